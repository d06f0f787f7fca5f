"""What people and tools read of an explanation: tables of text, a page of HTML, records."""

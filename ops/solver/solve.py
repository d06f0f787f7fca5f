class Unsolved(Exception): pass
def solve(*a,**k): pass

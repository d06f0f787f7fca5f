"""Matrix products: the roles of dims, the algorithms, their kernels."""

"""The composition root: the one package that knows every concrete class."""

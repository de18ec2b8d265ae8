"""The shared language: frozen values and protocols. Imports nothing of ours."""

package mcpserver

import "golang.org/x/sys/unix"

// dupOnto makes newfd a copy of oldfd. Some Linux ports have no dup2.
func dupOnto(oldfd, newfd int) error { return unix.Dup3(oldfd, newfd, 0) }

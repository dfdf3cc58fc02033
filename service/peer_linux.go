package service

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID returns the user of the process that connected, if the system tells.
func peerUID(c *net.UnixConn) (uid int, known bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid, known = int(peer.Uid), true
		}
	})
	return uid, known && err == nil
}

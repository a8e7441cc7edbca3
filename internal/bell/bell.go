// Package bell lets one process tell another to look again now, through a
// datagram socket in the file system. A ring carries no truth: it may get
// lost, several may become one, and some ring for nothing. Whoever has a bell
// also looks by itself once a second or so; the bell only makes it sooner.
//
// Where there are no such sockets (Windows) Listen returns a bell that never
// rings, Ring finds nobody, and that regular look is all there is.
package bell

import "errors"

// ErrNobody means that no process listens at a path: there never was one, or it
// has ended.
var ErrNobody = errors.New("nobody listens to this bell")

package service

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"recalld/ledger"
	recalldv1 "recalld/proto/recalld/v1"
)

// checkName refuses an id or a name that the contract does not allow. That it is
// UTF-8 the wire has seen to.
func checkName(field, s string, required bool) error {
	switch {
	case required && s == "":
		return invalid(field, "is empty", nil, nil)
	case len(s) > ledger.MaxNameBytes:
		return invalid(field, "is too long", sizeOf(ledger.MaxNameBytes), sizeOf(len(s)))
	case strings.IndexByte(s, 0) >= 0:
		return invalid(field, "holds a NUL character", nil, nil)
	}
	return nil
}

func sizeOf(n int) string { return fmt.Sprintf("%d bytes", n) }

// checkRef refuses a reference that names no memory. There is no default one.
func checkRef(ref *recalldv1.MemoryRef) error {
	if ref.GetId() == "" && ref.GetAgent() == "" && ref.GetProject() == "" {
		return invalid("memory", "is not named: give an id, or agent and project", nil, nil)
	}
	for _, part := range []struct{ field, value string }{
		{"memory.id", ref.GetId()}, {"memory.agent", ref.GetAgent()}, {"memory.project", ref.GetProject()},
	} {
		if err := checkName(part.field, part.value, false); err != nil {
			return err
		}
	}
	if ref.GetProject() != "" && ref.GetAgent() == "" {
		return invalid("memory.agent", "is empty: a project needs its agent", nil, nil)
	}
	return nil
}

// resolve returns the id of the memory that ref names. It makes none: one that
// is not there is NotFound. An id or alias and a key, both given, must agree.
func (s *Server) resolve(ctx context.Context, ref *recalldv1.MemoryRef) (string, error) {
	if err := checkRef(ref); err != nil {
		return "", err
	}
	names := make([]string, 0, 2)
	if ref.GetId() != "" {
		names = append(names, ref.GetId())
	}
	if ref.GetAgent() != "" {
		names = append(names, ledger.MemoryID(keyOf(ref)))
	}
	var id string
	for _, name := range names {
		got, err := s.store.Resolve(ctx, name)
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			return "", errUnknown("memory")
		case err != nil:
			return "", err
		case id != "" && got != id:
			return "", invalid("memory", "id and agent with project name different memories", nil, nil)
		}
		id = got
	}
	return id, nil
}

// target is resolve for Append: the memory of a key may be new. It makes none;
// the key is what to make it of, the zero key if it must be there.
func (s *Server) target(ctx context.Context, ref *recalldv1.MemoryRef) (id string, key ledger.MemoryKey, err error) {
	id, err = s.resolve(ctx, ref)
	if ref.GetAgent() == "" {
		return id, ledger.MemoryKey{}, err
	}
	key = keyOf(ref)
	var e *fieldError
	if errors.As(err, &e) && e.code == codes.NotFound && (ref.GetId() == "" || ref.GetId() == ledger.MemoryID(key)) {
		return ledger.MemoryID(key), key, nil
	}
	return id, key, err
}

func keyOf(ref *recalldv1.MemoryRef) ledger.MemoryKey {
	return ledger.MemoryKey{Agent: ref.GetAgent(), Project: ref.GetProject()}
}

// checkSessions refuses sessions that are not of this memory. One of another
// memory reads like one that does not exist.
func (s *Server) checkSessions(ctx context.Context, id, field string, sessions []string) error {
	if len(sessions) > maxListed {
		return invalid(field, "are too many", maxListed, len(sessions))
	}
	for i, session := range sessions {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := checkName(at, session, true); err != nil {
			return err
		}
		if err := s.checkSession(ctx, id, at, session); err != nil {
			return err
		}
	}
	return nil
}

// checkSession is checkSessions for one, whose name is checked.
func (s *Server) checkSession(ctx context.Context, id, field, session string) error {
	if session == ledger.NotesSession {
		return nil
	}
	owner, err := s.store.SessionMemory(ctx, session)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && owner != id {
		return errUnknown(field)
	}
	return err
}

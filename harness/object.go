package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// An object is a JSON object whose fields are read one by one, so that a fault
// names its field. Its errors are *fieldError.
type object struct {
	path   string // of the object in its line, "" or ending in "."
	fields map[string]json.RawMessage
}

// A fieldError is a LineError that does not know its line yet.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// atLine makes err a *LineError.
func atLine(number int, err error) *LineError {
	var in *fieldError
	if errors.As(err, &in) {
		return &LineError{Line: number, Field: in.field, Err: in.err}
	}
	return &LineError{Line: number, Err: err}
}

// errMissing says that a field has to be there and to hold something.
var errMissing = errors.New("missing or empty")

// parseObject reads a line as one JSON object. The error is a *LineError.
func parseObject(line numbered) (object, error) {
	if !utf8.Valid(line.text) {
		return object{}, atLine(line.number, errors.New("not valid UTF-8"))
	}
	o := object{}
	if err := json.Unmarshal(line.text, &o.fields); err != nil {
		return object{}, atLine(line.number, fmt.Errorf("not a JSON object: %w", plainJSON(err)))
	}
	if o.fields == nil {
		return object{}, atLine(line.number, errors.New("not a JSON object: it is null"))
	}
	return o, nil
}

// plainJSON rewords an error of encoding/json so that it neither speaks of Go's
// types nor quotes a value.
func plainJSON(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("broken off or malformed at byte %d", syntax.Offset)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("unexpected %s", kindOfValue(kind.Value))
	}
	return errors.New("malformed")
}

// kindOfValue drops the value that encoding/json adds to the word "number".
func kindOfValue(value string) string {
	for _, kind := range []string{"number", "string", "array", "object", "bool"} {
		if len(value) >= len(kind) && value[:len(kind)] == kind {
			return kind
		}
	}
	return "value"
}

func (o object) has(field string) bool {
	_, ok := o.fields[field]
	return ok
}

// fault is an error in the named field.
func (o object) fault(field string, err error) error {
	return &fieldError{field: o.path + field, err: err}
}

// only checks that the object has no other fields than these.
func (o object) only(known ...string) error {
	var unknown []string
	for field := range o.fields {
		if !slices.Contains(known, field) {
			unknown = append(unknown, field)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return o.fault(slices.Min(unknown), errors.New("unknown field"))
}

// text reads a string; a field that is missing or null is empty.
func (o object) text(field string) (string, error) {
	var s string
	raw, ok := o.fields[field]
	if !ok {
		return "", nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", o.fault(field, plainJSON(err))
	}
	return s, nil
}

// need reads a string that must not be empty.
func (o object) need(field string) (string, error) {
	s, err := o.text(field)
	if err == nil && s == "" {
		err = o.fault(field, errMissing)
	}
	return s, err
}

// objects reads an array of objects; it must be there and may be empty.
func (o object) objects(field string) ([]object, error) {
	var list []map[string]json.RawMessage
	raw, ok := o.fields[field]
	if !ok {
		return nil, o.fault(field, errMissing)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, o.fault(field, plainJSON(err))
	}
	all := make([]object, len(list))
	for i, fields := range list {
		all[i] = object{path: fmt.Sprintf("%s%s[%d].", o.path, field, i), fields: fields}
	}
	return all, nil
}

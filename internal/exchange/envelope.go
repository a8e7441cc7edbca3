package exchange

import (
	"bytes"
	"encoding/json"
	"errors"

	"switchboard/internal/delivery"
)

// errNoKind is a bug of the caller: no reader takes a message without a kind.
var errNoKind = errors.New("message without a kind")

// EncodeEnvelope writes a message as stores keep it, one line of JSON. It
// checks the limits, so that they are the same in every store. Bytes that are
// no text become U+FFFD before they are counted: JSON would turn them into it
// afterwards, and a reader would find more than it accepts.
func EncodeEnvelope(m delivery.Message) ([]byte, error) {
	if m.Kind == "" {
		return nil, errNoKind
	}
	m.Text = validUTF8(m.Text)
	if len(m.Text) > delivery.MaxText {
		return nil, ErrTooLarge
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Envelope{Version: Version, Message: m}); err != nil {
		return nil, err
	}
	if buf.Len() > delivery.MaxMessage {
		return nil, ErrTooLarge
	}
	return buf.Bytes(), nil
}

// validUTF8 replaces each byte that is no text, the way JSON does.
func validUTF8(s string) string { return string([]rune(s)) }

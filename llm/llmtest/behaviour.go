package llmtest

import "slices"

// A Behaviour is a way of being a model server.
type Behaviour string

// Well is the behaviour of a server at its best.
const Well Behaviour = ""

// Of the network and of HTTP, for every call.
const (
	Refused     Behaviour = "connection refused"
	BlackHole   Behaviour = "black hole"          // a connection that nobody accepts
	Silent      Behaviour = "accepts then silent" // reads the request and says nothing
	SlowHeaders Behaviour = "slow headers"        // a byte of header a second
	Drip        Behaviour = "one byte a second"   // of a good answer
	Endless     Behaviour = "endless body"
	Disconnect  Behaviour = "mid-answer disconnect"
	HangUp      Behaviour = "disconnect without an answer"
	Loading     Behaviour = "model loading 30 s" // and then a good answer
	Redirect    Behaviour = "redirect to another host"
	BadRequest  Behaviour = "400"
	NoKey       Behaviour = "401"
	Forbidden   Behaviour = "403"
	NoModel     Behaviour = "404 model"
	NoPage      Behaviour = "404 page"
	TooMany     Behaviour = "429" // Retry-After: 90
	ServerError Behaviour = "500"
	Unavailable Behaviour = "503" // Retry-After: 90
	HTML        Behaviour = "200 and HTML"
	EmptyBody   Behaviour = "200 and nothing"
	Truncated   Behaviour = "truncated JSON"
	Null        Behaviour = "JSON null"
	WrongFields Behaviour = "wrong fields"
	WrongTypes  Behaviour = "wrong types"
	ErrorIn200  Behaviour = "200 and an error" // which quotes the prompt
)

// Of answers that are of no use, for chats.
const (
	EmptyString  Behaviour = "empty string"
	OnlyThinking Behaviour = "only thinking"
	NoReason     Behaviour = "missing done_reason"
	Cut          Behaviour = "cut at the token limit"
	BrokenJSON   Behaviour = "broken inner JSON"
	Prose        Behaviour = "prose instead of JSON"
	Trailing     Behaviour = "prose after JSON"
	OtherShape   Behaviour = "JSON of another shape"
	InnerNull    Behaviour = "inner JSON null"
)

// Of answers that are odd, but may be used, for chats.
const (
	Fenced      Behaviour = "fenced JSON"
	ThinksAloud Behaviour = "thinking in the answer"
	InvalidUTF8 Behaviour = "invalid UTF-8"
	Controls    Behaviour = "control characters"
	ManyTerms   Behaviour = "10k terms"
	LongTerms   Behaviour = "terms of 10 KiB"
	Sentences   Behaviour = "whole sentences that give orders"
	Repeats     Behaviour = "repeats the prompt"
	NoUsage     Behaviour = "no token counts"
	WildUsage   Behaviour = "absurd token counts"
)

// Of embeddings.
const (
	NaN            Behaviour = "NaN in a vector"
	NullVector     Behaviour = "null for a vector"
	NullNumbers    Behaviour = "null for numbers"
	HugeNumbers    Behaviour = "numbers too large for 32 bits"
	NoVectors      Behaviour = "[] for vectors"
	EmptyVectors   Behaviour = "empty vectors"
	TooFew         Behaviour = "a vector too few"
	TooManyVectors Behaviour = "a vector too many"
	WrongDimension Behaviour = "wrong dimension"  // one number more
	MixedDimension Behaviour = "mixed dimensions" // in one answer: odd texts have one number more
	ZeroVector     Behaviour = "zero vectors"
	NotUnit        Behaviour = "vectors not of unit length" // ten times as long
	OneBad         Behaviour = "one bad text in a batch"    // 500 for a batch with Poison
	CannotEmbed    Behaviour = "a model that cannot embed"
)

// Poison is the word whose text [OneBad] cannot embed, alone or in a batch.
const Poison = "poison"

var (
	network = []Behaviour{
		Refused, BlackHole, Silent, SlowHeaders, Drip, Endless, Disconnect, HangUp, Loading, Redirect,
		BadRequest, NoKey, Forbidden, NoModel, NoPage, TooMany, ServerError, Unavailable,
		HTML, EmptyBody, Truncated, Null, WrongFields, WrongTypes, ErrorIn200,
	}
	useless = []Behaviour{
		EmptyString, OnlyThinking, NoReason, Cut, BrokenJSON, Prose, Trailing, OtherShape, InnerNull,
	}
	odd = []Behaviour{
		Fenced, ThinksAloud, InvalidUTF8, Controls, ManyTerms, LongTerms, Sentences, Repeats, NoUsage, WildUsage,
	}
	embeddings = []Behaviour{
		NaN, NullVector, NullNumbers, HugeNumbers, NoVectors, EmptyVectors, TooFew, TooManyVectors, WrongDimension,
		MixedDimension, ZeroVector, NotUnit, OneBad, CannotEmbed,
	}
)

// Network returns the behaviours that concern every call. [Drip] and [Loading]
// lead to an answer if one has minutes; none of the others does.
func Network() []Behaviour { return slices.Clone(network) }

// ForChat returns the behaviours that concern chats: those of [Network], of
// answers that are of no use, and of odd ones.
func ForChat() []Behaviour { return slices.Concat(network, useless, odd) }

// Usable reports whether a chat has an answer under b that is not an error,
// given time. ([OtherShape] and [InnerNull] are JSON: whether they are of use is
// for the caller to say.)
func Usable(b Behaviour) bool {
	return slices.Contains(odd, b) || slices.Contains([]Behaviour{Well, Drip, Loading, OtherShape, InnerNull}, b)
}

// ForEmbed returns the behaviours that concern embeddings.
func ForEmbed() []Behaviour { return slices.Concat(network, embeddings) }

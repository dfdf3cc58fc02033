package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	recalldv1 "recalld/proto/recalld/v1"
)

func (a *app) showCommand() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "show MESSAGE_ID",
		Short: "Print one message whole",
		Long: `Show prints one message with who said it, when and in which session. On a
terminal its lines are wrapped; --raw writes the stored bytes and nothing else.`,
		Example: `  recalld show 62a565a1-6c33-4bb4-82ae-cf498d1b039f
  recalld show --raw 62a565a1-6c33-4bb4-82ae-cf498d1b039f > message.txt`,
		Args: exactlyOne("one message id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && a.json {
				return usageErrorf("--raw and --json: choose one")
			}
			return a.show(cmd.Context(), args[0], raw)
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "write only the bytes, as they were stored")
	return cmd
}

func (a *app) show(ctx context.Context, id string, raw bool) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ref, err := a.memoryRef(ctx, c)
	if err != nil {
		return err
	}
	stream, err := c.memories.GetMessage(ctx, &recalldv1.GetMessageRequest{Memory: ref, MessageId: id})
	if err != nil {
		return a.failed("show", err)
	}
	var message *recalldv1.Message
	var text []byte
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a.failed("show", err)
		}
		if part.GetMessage() != nil {
			message = part.GetMessage()
		}
		switch {
		case a.json:
			err = a.printJSON(part)
		case raw:
			err = a.print(part.GetData())
		default:
			text = append(text, part.GetData()...)
		}
		if err != nil {
			return err
		}
	}
	if !a.json && !raw {
		a.page().printMessage(message, string(text))
	}
	return nil
}

// printMessage prints one message for people. Where the output may become a
// file, its lines stay as long as they are.
func (p page) printMessage(m *recalldv1.Message, text string) {
	p.printf("%s\n", p.bold(bySpeaker(m.GetSpeaker(), m.GetKind())+" · "+when(m.GetTime())))
	p.printf("%s\n\n", p.dim("session "+oneLine(m.GetSessionId())+" · turn "+oneLine(m.GetTurnId())))
	if p.terminal {
		p.paragraph(0, printable(text), nil)
	} else {
		p.printf("%s\n", printable(text))
	}
	if !m.GetExact() {
		p.printf("\n")
		p.paragraph(0, fmt.Sprintf("Some of the %s are not text; --raw writes them.", count(m.GetBytes(), "byte", "bytes")), nil)
	}
}

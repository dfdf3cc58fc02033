package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the build of this program",
		Long: `Version prints the build id: when the program was made and what of, so that a
newer client knows an older server and replaces it.`,
		Example: `  recalld version
  recalld version --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	if a.json {
		return a.printObject(map[string]string{
			"build": buildID(), "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	return a.print(fmt.Appendf(nil, "recalld %s (%s, %s/%s)\n", buildID(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
}

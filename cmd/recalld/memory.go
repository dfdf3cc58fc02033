package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	recalldv1 "recalld/proto/recalld/v1"
)

// memoryRef names the memory a command is about: that of --memory, or that of
// --agent and --project. A missing project is the repository around the current
// folder, a missing agent the only one that has a memory for the project.
func (a *app) memoryRef(ctx context.Context, c *client) (*recalldv1.MemoryRef, error) {
	ref := &recalldv1.MemoryRef{Id: a.memory, Agent: a.agent, Project: a.project}
	if a.memory != "" {
		// Naming both ways is allowed; the server checks that they agree.
		return ref, nil
	}
	if !a.projectGiven {
		project, err := currentProject()
		if err != nil {
			return nil, err
		}
		ref.Project = project
	}
	if ref.Agent != "" {
		return ref, nil
	}
	if ref.Project == "" {
		return nil, usageErrorf("--project: is empty; a memory without a project needs --agent")
	}
	agents, err := a.agentsOf(ctx, c, ref.Project)
	if err != nil {
		return nil, err
	}
	switch len(agents) {
	case 1:
		ref.Agent = agents[0]
		return ref, nil
	case 0:
		return nil, fmt.Errorf("no memory of the project %s in %s; name one with --agent and --project, recalld memories lists them", ref.Project, a.root)
	}
	return nil, fmt.Errorf("several agents have a memory of the project %s: %s; name one with --agent", ref.Project, strings.Join(agents, ", "))
}

// agentsOf lists the agents that have a memory of a project, sorted.
func (a *app) agentsOf(ctx context.Context, c *client, project string) ([]string, error) {
	list, err := c.memories.List(ctx, &recalldv1.ListRequest{})
	if err != nil {
		return nil, a.failed("look for the memory", err)
	}
	var agents []string
	for _, m := range list.GetMemories() {
		if m.GetProject() == project {
			agents = append(agents, m.GetAgent())
		}
	}
	slices.Sort(agents)
	return slices.Compact(agents), nil
}

// currentProject is the repository around the current folder: the nearest
// folder above that holds .git, or the current folder if there is none.
func currentProject() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("current folder: %w; name the project with --project", err)
	}
	// Agents report the real path; the shell may be in a linked one.
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return repositoryRoot(folder), nil
}

func repositoryRoot(folder string) string {
	for at := folder; ; at = filepath.Dir(at) {
		// A file of this name is that of a work tree or a submodule.
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return folder
		}
	}
}

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The plots of the report.
const (
	recallPlot  = "recall.svg"
	latencyPlot = "latency.svg"
	plotWidth   = 18 * vg.Centimeter
	plotHeight  = 11 * vg.Centimeter
	plotMargin  = 6 * vg.Millimeter
)

// A curve is a line of a plot, by ascending x, or points that no line joins.
type curve struct {
	label  string
	points plotter.XYs
	loose  bool
}

// A picture is a plot to be drawn.
type picture struct {
	name, title, x, y string
	curves            []curve
	logX, logY        bool
	// share: y goes from 0 to 1. ticks of x are powers of ten when there are none.
	share bool
	ticks []plot.Tick
}

// plots makes the pictures of the report, without those that would be empty.
func (r *report) plots() []picture {
	all := []picture{
		{
			name: recallPlot, title: "Recall against k",
			x: "k", y: "recall@k", curves: r.recallCurves(), logX: true, share: true, ticks: cutoffTicks(),
		},
		{
			name: latencyPlot, title: "Recall latency against the size of a memory",
			x: "messages", y: "milliseconds", curves: r.latencyCurves(), logX: true, logY: true,
		},
	}
	return slices.DeleteFunc(all, func(p picture) bool { return len(p.curves) == 0 })
}

func cutoffTicks() []plot.Tick {
	ticks := make([]plot.Tick, len(cutoffs))
	for i, k := range cutoffs {
		ticks[i] = plot.Tick{Value: float64(k), Label: strconv.Itoa(k)}
	}
	return ticks
}

// recallCurves has a curve for each set that is a ranking, of its report part
// or, without a split, of all.
func (r *report) recallCurves() []curve {
	var curves []curve
	for _, one := range r.sets {
		split := one.run.splits()[0]
		metrics := one.run.result(split).Metrics
		c := curve{label: fmt.Sprintf("%s (%s)", one.run.Set.Name, split)}
		for _, k := range cutoffs {
			if x, ok := metrics[fmt.Sprintf("recall@%d", k)]; ok {
				c.points = append(c.points, plotter.XY{X: float64(k), Y: x})
			}
		}
		if len(c.points) > 0 {
			curves = append(curves, c)
		}
	}
	return curves
}

// latencyCurves has the median of each memory of the sets, and the synthetic
// memories if they were measured.
func (r *report) latencyCurves() []curve {
	curves := []curve{{label: "sets, p50 by memory", points: r.setLatencies(), loose: true}}
	if r.speed != nil {
		var median, high curve
		median.label, high.label = "synthetic, p50", "synthetic, p95"
		for _, s := range r.speed.Sizes {
			median.points = append(median.points, plotter.XY{X: float64(s.Messages), Y: s.Recall.P50})
			high.points = append(high.points, plotter.XY{X: float64(s.Messages), Y: s.Recall.P95})
		}
		curves = append(curves, median, high)
	}
	return slices.DeleteFunc(curves, func(c curve) bool { return len(c.points) == 0 })
}

// setLatencies gives the median time of each memory that was ranked.
func (r *report) setLatencies() plotter.XYs {
	times := make(map[string][]time.Duration)
	sizes := make(map[string]int)
	for _, one := range r.sets {
		if one.run.Set.Gated {
			continue
		}
		for i := range one.run.Set.Memories {
			sizes[one.run.Set.Memories[i].Project] = one.run.Set.Memories[i].messages()
		}
		for i, took := range one.run.Took {
			project := one.run.Set.Questions[i].Project
			times[project] = append(times[project], took)
		}
	}
	var points plotter.XYs
	for _, project := range slices.Sorted(maps.Keys(times)) {
		if sizes[project] > 0 {
			points = append(points, plotter.XY{X: float64(sizes[project]), Y: percentiles(times[project]).P50})
		}
	}
	slices.SortStableFunc(points, func(a, b plotter.XY) int { return int(a.X - b.X) })
	return points
}

// draw writes the picture as SVG.
func (p *picture) draw(out io.Writer) error {
	canvas := plot.New()
	canvas.Title.Text, canvas.X.Label.Text, canvas.Y.Label.Text = p.title, p.x, p.y
	canvas.Legend.Top, canvas.Legend.Left = p.logY, p.logY
	if !canvas.Legend.Left {
		canvas.Legend.XOffs = -plotMargin // its lines are drawn half outside
	}
	canvas.Add(plotter.NewGrid())
	for i, c := range p.curves {
		line, marks, err := plotter.NewLinePoints(p.drawable(c.points))
		if err != nil {
			return err
		}
		line.Color, marks.Color = plotutil.Color(i), plotutil.Color(i)
		marks.Shape = plotutil.Shape(i)
		if c.loose {
			canvas.Add(marks)
			canvas.Legend.Add(c.label, marks)
			continue
		}
		canvas.Add(line, marks)
		canvas.Legend.Add(c.label, line, marks)
	}
	p.scale(canvas)
	svg := vgsvg.New(plotWidth, plotHeight)
	canvas.Draw(draw.Crop(draw.New(svg), 0, -plotMargin, 0, 0))
	_, err := svg.WriteTo(out)
	return err
}

// scale sets the axes of a plot whose curves are there.
func (p *picture) scale(canvas *plot.Plot) {
	if p.logX {
		canvas.X.Scale, canvas.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.logY {
		canvas.Y.Scale, canvas.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.share {
		canvas.Y.Min, canvas.Y.Max = 0, 1
	}
	if p.ticks != nil {
		canvas.X.Tick.Marker = plot.ConstantTicks(p.ticks)
	}
}

// smallest is the least number drawn on a logarithmic axis.
const smallest = .01

// drawable keeps points off the zero that a logarithm cannot show.
func (p *picture) drawable(points plotter.XYs) plotter.XYs {
	kept := slices.Clone(points)
	for i := range kept {
		if p.logX {
			kept[i].X = max(kept[i].X, smallest)
		}
		if p.logY {
			kept[i].Y = max(kept[i].Y, smallest)
		}
	}
	return kept
}

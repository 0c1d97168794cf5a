/** Labels of a value. They contain names of tools, operations and statuses, and never a caller or an object. */
type Labels = Readonly<Record<string, string>>;

/** A metric: one number for each combination of labels. */
interface Figure {
  add(by: number, labels?: Labels): void;
}

interface Kept {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  /** Values by the text of their labels. */
  readonly values: Map<string, number>;
}

/** The metrics of this process since its start. */
export interface Figures {
  /** Creates a metric that only grows; its name ends in `_total`. */
  counter(name: string, help: string): Figure;
  /** Creates a metric that grows and shrinks. */
  gauge(name: string, help: string): Figure;
  /** Returns all metrics in the text format of Prometheus, version 0.0.4. */
  text(): string;
}

/** The content type of that format. */
export const FIGURES_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const PREFIX = "targeting_mcp_";

/** Creates an empty set of metrics. */
export function newFigures(): Figures {
  const all: Kept[] = [];
  const createFigure = (type: Kept["type"], name: string, help: string): Figure => {
    const values = new Map<string, number>();
    all.push({ name: PREFIX + name, type, help, values });
    return {
      add(by, labels) {
        const written = labels === undefined ? "" : writtenLabels(labels);
        values.set(written, (values.get(written) ?? 0) + by);
      },
    };
  };
  return {
    counter: (name, help) => createFigure("counter", name, help),
    gauge: (name, help) => createFigure("gauge", name, help),
    text: () => all.map(figureText).join(""),
  };
}

function figureText({ name, type, help, values }: Kept): string {
  const lines = [...values].map(([labels, value]) => `${name}${labels} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function writtenLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

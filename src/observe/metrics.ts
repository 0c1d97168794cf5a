/** The labels of a value: names of tools, operations and statuses, but never of callers or objects. */
type Labels = Readonly<Record<string, string>>;

/** A metric, with one number for each combination of labels. */
interface Figure {
  add(by: number, labels?: Labels): void;
}

interface Kept {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly values: Map<string, number>;
}

export interface Figures {
  /** Creates a metric that only grows. Its name ends in `_total`. */
  counter(name: string, help: string): Figure;
  gauge(name: string, help: string): Figure;
  text(): string;
}

export const FIGURES_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const PREFIX = "targeting_mcp_";

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

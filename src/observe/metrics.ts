/** Labels of a value. They hold names of tools, operations, statuses: never one of a caller or of an object. */
type Labels = Readonly<Record<string, string>>;

/** A figure: plain numbers, one for each combination of labels. */
interface Figure {
  add(by: number, labels?: Labels): void;
}

interface Kept {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  /** By the labels as they are written. */
  readonly values: Map<string, number>;
}

/** Figures of this process since its start. */
export interface Figures {
  /** Makes a figure that only grows; its name ends in `_total`. */
  counter(name: string, help: string): Figure;
  /** Makes a figure that grows and shrinks. */
  gauge(name: string, help: string): Figure;
  /** All of them in the text format of Prometheus, version 0.0.4. */
  text(): string;
}

/** The content type of that format. */
export const FIGURES_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const PREFIX = "targeting_mcp_";

/** Makes figures; there are none at first. */
export function newFigures(): Figures {
  const all: Kept[] = [];
  const made = (type: Kept["type"], name: string, help: string): Figure => {
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
    counter: (name, help) => made("counter", name, help),
    gauge: (name, help) => made("gauge", name, help),
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

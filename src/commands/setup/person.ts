import type { Launch } from "./launch.ts";

/** How setup reaches the person. */
export interface Person {
  readonly say: (text: string) => void;
  /** Asks a question; undefined where no person can answer. */
  readonly ask: ((question: string) => Promise<boolean>) | undefined;
  /** The person has agreed to everything but keys. */
  readonly agreed: boolean;
  /** How a host starts the command that runs. */
  readonly launch: Launch;
}

/** What is said where nothing was done for want of a yes: where no person could be asked, why, and what `--yes` does. */
export function undone({ ask }: Person, what: string, withYes: string): string {
  return ask === undefined ? `${what}: there is no terminal to ask on. --yes ${withYes}.` : `${what}.`;
}

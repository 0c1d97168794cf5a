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

/** Prints a text for a person; gives the exit code of a command that has nothing else to do. */
export function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

/** Ends the process once everything is written: what is left of sockets and timers must not keep it alive. */
export function endWhenWritten(): void {
  process.stdout.write("", () => process.exit());
}

/**
 * The signals that ask a process to end. On Windows a closed console window says SIGHUP; elsewhere `nohup` is to be
 * respected.
 */
export function stopSignals(platform: NodeJS.Platform): readonly NodeJS.Signals[] {
  return platform === "win32" ? ["SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP"] : ["SIGTERM", "SIGINT"];
}

/**
 * Resolves when this process is asked to end. It may be asked twice: npx passes on an interrupt that the terminal has
 * sent to both already. So later signals do nothing; each command limits the time that stopping takes.
 */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of stopSignals(process.platform)) process.on(name, () => resolve());
  });
}

/** What some work gives; undefined where this process is asked to end before. */
export function orAsked<T>(work: Promise<T>, asked: Promise<void>): Promise<T | undefined> {
  return Promise.race([work, asked.then(() => undefined)]);
}

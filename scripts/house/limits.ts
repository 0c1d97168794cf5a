/**
 * The most that one place of `src/` may hold: lines of a file, lines of a function's body, files directly in a folder.
 */
export const LIMITS = { fileLines: 300, functionLines: 60, folderFiles: 12 } as const;

/**
 * What exceeds a limit for now, with its ceiling, by path below `src/`. A ceiling may only be lowered, and an entry is
 * removed as soon as its file or folder fits. The linter's rules are made from this list, like those of the rooms, and
 * test/house/limits.test.ts holds it.
 */
export const EXCEPTIONS: Readonly<Record<keyof typeof LIMITS, Readonly<Record<string, number>>>> = {
  /** Lines of a file. */
  fileLines: {},
  /** Lines of the longest function in a file. */
  functionLines: {},
  /** Files directly in a folder; rooms inside it count by themselves, and files of single tools are a catalogue. */
  folderFiles: {},
};

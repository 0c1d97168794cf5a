/** A file cannot be read or written: what is wrong, and what to do. */
export class FileError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** The error for a path that lies in no folder which may be used. */
export class FolderRefused extends FileError {
  readonly path: string;
  constructor(path: string, message: string, remedy: string) {
    super(message, remedy);
    this.path = path;
  }
}

/** Whether something thrown is an error of the operating system with this code. */
export function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
}

/** The error for a path that goes through a link, or did so by the time it was used. */
export function linkRefused(path: string, remedy: string, options?: ErrorOptions): FileError {
  return new FileError(`${JSON.stringify(path)} goes through a link, which is refused`, remedy, options);
}

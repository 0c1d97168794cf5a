import type { PathLike, RmOptions } from "node:fs";
import type * as promises from "node:fs/promises";
import { resolve, sep } from "node:path";

/** What a test can do with the emulated file system. */
export interface Ntfs {
  /** Opens a file, as virus scanners do. The returned function closes it. */
  readonly hold: (path: string) => () => void;
  /** From now on, a virus scanner opens each written file for this many milliseconds; 0 turns the scanner off. */
  readonly scan: (ms: number) => void;
  /** The paths that are open now. */
  readonly open: () => readonly string[];
  /** How often an operation was refused because a file was open. */
  readonly refused: () => number;
}

/**
 * The functions of node:fs/promises with the behaviour of NTFS: an open file cannot be moved, replaced or removed, and
 * neither can a folder that contains one (EPERM, EBUSY). Reading keeps a file open until the end of the read.
 */
export function asOnNtfs(real: typeof promises): { readonly functions: Partial<typeof promises>; readonly ntfs: Ntfs } {
  const opened = new Map<string, number>();
  let refusals = 0;
  const hold = (path: string): (() => void) => {
    const file = resolve(path);
    opened.set(file, (opened.get(file) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const left = (opened.get(file) ?? 0) - 1;
      if (left > 0) opened.set(file, left);
      else opened.delete(file);
    };
  };
  const isOpen = (path: string): boolean => {
    const file = resolve(path);
    return opened.has(file) || [...opened.keys()].some((one) => one.startsWith(file + sep));
  };
  const refuse = (code: "EPERM" | "EBUSY", syscall: string, path: string): Error => {
    refusals += 1;
    return Object.assign(new Error(`${code}: it is open, ${syscall} '${path}'`), { code, syscall, path });
  };
  let scanMs = 0;
  const written = (path: string): void => {
    if (scanMs > 0) setTimeout(hold(path), scanMs);
  };
  const open: typeof promises.open = async (...args) => {
    const handle = await real.open(...args);
    const release = hold(String(args[0]));
    const { close } = handle;
    handle.close = async () => {
      await close.call(handle);
      release();
      written(String(args[0]));
    };
    return handle;
  };
  const writeFile: typeof promises.writeFile = async (file, ...rest) => {
    await real.writeFile(file, ...rest);
    written(String(file));
  };
  const functions = {
    open,
    writeFile,
    async rename(from: PathLike, to: PathLike) {
      for (const path of [String(from), String(to)]) if (isOpen(path)) throw refuse("EPERM", "rename", path);
      await real.rename(from, to);
    },
    async unlink(path: PathLike) {
      if (isOpen(String(path))) throw refuse("EBUSY", "unlink", String(path));
      await real.unlink(path);
    },
    async rm(path: PathLike, options?: RmOptions) {
      if (isOpen(String(path))) throw refuse("EBUSY", "rm", String(path));
      await real.rm(path, options);
    },
  };
  return {
    functions,
    ntfs: {
      hold,
      open: () => [...opened.keys()],
      refused: () => refusals,
      scan: (ms) => {
        scanMs = ms;
      },
    },
  };
}

import { readFile } from "node:fs/promises";
import { PATHS } from "../paths.ts";
import type { LoginWays } from "../wire.ts";
import { pageAnswer } from "./answers.ts";

/** The files that the build makes of the page, with their types. */
const FILES = {
  page: { name: "page.html", type: "text/html; charset=utf-8" },
  script: { name: "page.js", type: "text/javascript; charset=utf-8" },
  style: { name: "page.css", type: "text/css; charset=utf-8" },
} as const;

/** Built code lies in the folder of these files; source that is run as it is takes those of the last build. */
const FOLDER = new URL(import.meta.url.endsWith(".ts") ? "../../../dist/" : "./", import.meta.url);

/**
 * One of the page's files; `headers` come on top of the page's own, e.g. the cookie of a new session. The page itself is told
 * with `login` that it has no session, so that it asks for none in vain.
 */
export async function pageFile(
  file: keyof typeof FILES,
  {
    headers = {},
    isHead = false,
    login,
    status = 200,
  }: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly isHead?: boolean;
    readonly login?: LoginWays;
    readonly status?: number;
  } = {},
): Promise<Response> {
  const { name, type } = FILES[file];
  const content = await readFile(new URL(name, FOLDER), "utf8");
  const ways = login && `<meta name="login" content="${encodeURIComponent(JSON.stringify(login))}"></head>`;
  return pageAnswer(isHead ? null : ways === undefined ? content : content.replace("</head>", ways), {
    status,
    headers: { "Content-Type": type, ...headers },
  });
}

/** The page's script or style, which hold no data and so need no session; undefined for other paths. */
export async function pageAsset(path: string): Promise<Response | undefined> {
  if (path === PATHS.script) return pageFile("script");
  return path === PATHS.style ? pageFile("style") : undefined;
}

import { readFile } from "node:fs/promises";
import { pageAnswer } from "./answers.ts";
import { PATHS } from "./paths.ts";
import type { LoginWays } from "./wire.ts";

/** The files that the build makes of the page, with their types. */
const FILES = {
  page: { name: "page.html", type: "text/html; charset=utf-8" },
  script: { name: "page.js", type: "text/javascript; charset=utf-8" },
  style: { name: "page.css", type: "text/css; charset=utf-8" },
  viewScript: { name: "view.js", type: "text/javascript; charset=utf-8" },
  viewStyle: { name: "view.css", type: "text/css; charset=utf-8" },
} as const;

/** Built code lies in the folder of these files; source that is run as it is takes those of the last build. */
const FOLDER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/" : "./", import.meta.url);

/**
 * The page, which holds no data: its script has a session or none. With `login` it learns how a person without session
 * gets one, or with `session` the token of a new one.
 */
export async function pageDocument(
  about: { readonly login: LoginWays } | { readonly session: string },
  { isHead = false }: { readonly isHead?: boolean } = {},
): Promise<Response> {
  const metas = Object.entries(about).map(
    ([name, content]) => `<meta name="${name}" content="${encodeURIComponent(JSON.stringify(content))}">`,
  );
  const text = (await contentOf("page")).replace("</head>", () => `${metas.join("")}</head>`);
  return pageAnswer(isHead ? null : text, { headers: { "Content-Type": FILES.page.type } });
}

/** The page's script or style, which hold no data and so need no session; undefined for other paths. */
export async function pageAsset(path: string): Promise<Response | undefined> {
  const file = path === PATHS.script ? "script" : path === PATHS.style ? "style" : undefined;
  if (file === undefined) return undefined;
  return pageAnswer(await contentOf(file), { headers: { "Content-Type": FILES[file].type } });
}

/** One document that loads nothing: within a host it shows the run that the host hands to it. */
export async function viewDocument(): Promise<string> {
  const [page, script, style] = await Promise.all([contentOf("page"), contentOf("viewScript"), contentOf("viewStyle")]);
  return page
    .replace("<html", "<html data-view")
    .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`)
    .replace(/<script [^>]*><\/script>/, () => `<script type="module">${script}</script>`);
}

function contentOf(file: keyof typeof FILES): Promise<string> {
  return readFile(new URL(FILES[file].name, FOLDER), "utf8");
}

import { readFile } from "node:fs/promises";
import type { LoginWays } from "./wire.ts";

const FILES = {
  page: { name: "page.html", type: "text/html; charset=utf-8" },
  script: { name: "page.js", type: "text/javascript; charset=utf-8" },
  style: { name: "page.css", type: "text/css; charset=utf-8" },
  viewScript: { name: "view.js", type: "text/javascript; charset=utf-8" },
  viewStyle: { name: "view.css", type: "text/css; charset=utf-8" },
} as const;

/** The folder of the built files. Code that runs from source uses the files of the last build. */
const FOLDER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/" : "./", import.meta.url);

/** Returns a file of the web page. The files contain no data of runs. `change` edits the text of the file. */
export async function asset(file: keyof typeof FILES, change = (text: string): string => text): Promise<Response> {
  return new Response(change(await contentOf(file)), { headers: { "Content-Type": FILES[file].type } });
}

/** The data that the HTML passes to its script: the ways to log in, or the token of a new session. */
export type PageAbout = { readonly login: LoginWays } | { readonly session: string };

/** Returns the HTML of the web page. It contains no data of runs. */
export function pageDocument(about: PageAbout): Promise<Response> {
  const metas = Object.entries(about).map(
    ([name, content]) => `<meta name="${name}" content="${encodeURIComponent(JSON.stringify(content))}">`,
  );
  return asset("page", (text) => text.replace("</head>", () => `${metas.join("")}</head>`));
}

/**
 * Returns the view that agents' hosts embed: one HTML document that loads nothing and shows the run that the host
 * passes to it.
 */
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

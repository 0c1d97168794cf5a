import { render } from "preact";
import { PATHS } from "../paths.ts";
import { Frame } from "./frame.tsx";
import { redeem } from "./redeem.ts";
import { link } from "./state.ts";
import { follow } from "./stream.ts";

render(<Frame />, document.body);
const { pathname } = location;
const login = document.querySelector<HTMLMetaElement>("meta[name=login]")?.content;
if (pathname.startsWith(PATHS.open)) await redeem(pathname.slice(PATHS.open.length));
else if (login !== undefined) link.value = { is: "refused", ways: JSON.parse(decodeURIComponent(login)) };
else if (pathname === PATHS.callback) location.replace(PATHS.page);
else await follow();

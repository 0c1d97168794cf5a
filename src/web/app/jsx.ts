// The functions that compiled JSX calls. The build imports them into every component (esbuild's option `inject`).
export { Fragment, h } from "preact";

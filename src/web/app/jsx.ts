// The functions that the compiled JSX calls. The build makes them known in every component.
export { Fragment, h } from "preact";

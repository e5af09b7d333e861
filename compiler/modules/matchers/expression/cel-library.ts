/** The CEL library, loaded when the first expression is compiled: it takes a tenth of a second that nobody else shall pay. */
import { createRequire } from 'node:module';

/** What the library exports. */
export type CelLibrary = typeof import('@bufbuild/cel');

/** The library and its extended functions of strings. */
export interface Cel {
	readonly library: CelLibrary;
	readonly strings: typeof import('@bufbuild/cel/ext')['strings'];
}

/** There inside the bundle of the binary, where nothing can be loaded by name; not in a checkout's modules. */
declare const require: ((name: string) => unknown) | undefined;

/** Loads the library at once: building a site cannot wait. Later calls find it loaded. */
export function loadCel(): Cel {
	// The bundler follows `require` with a literal name only.
	if (typeof require === 'function') {
		return {
			library: require('@bufbuild/cel') as CelLibrary,
			strings: (require('@bufbuild/cel/ext') as typeof import('@bufbuild/cel/ext')).strings,
		};
	}
	const load = createRequire(import.meta.url);
	return { library: load('@bufbuild/cel'), strings: load('@bufbuild/cel/ext').strings };
}

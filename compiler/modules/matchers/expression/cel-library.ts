/** Loads the CEL library when the first expression is compiled, because loading takes a tenth of a second. */
import { createRequire } from 'node:module';

export type CelLibrary = typeof import('@bufbuild/cel');

/** The library and its extended string functions. */
export interface CelModules {
	readonly library: CelLibrary;
	readonly stringFunctions: typeof import('@bufbuild/cel/ext')['strings'];
}

/** Node's `require`. It is defined in the binary, whose bundle cannot load modules by name, but not in a checkout. */
declare const require: ((name: string) => unknown) | undefined;

/** Loads the library synchronously, because building a site cannot wait. Later calls return the loaded library. */
export function loadCel(): CelModules {
	// The bundler recognizes `require` only with a literal name.
	if (typeof require === 'function') {
		return {
			library: require('@bufbuild/cel') as CelLibrary,
			stringFunctions: (require('@bufbuild/cel/ext') as typeof import('@bufbuild/cel/ext')).strings,
		};
	}
	const load = createRequire(import.meta.url);
	return { library: load('@bufbuild/cel'), stringFunctions: load('@bufbuild/cel/ext').strings };
}

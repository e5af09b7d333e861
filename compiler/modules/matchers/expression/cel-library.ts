/** Loads the CEL library when the first expression is compiled, because loading takes a tenth of a second. */
import { createRequire } from 'node:module';

export type CelLibrary = typeof import('@bufbuild/cel');

/** The library and its extended string functions. */
export interface CelModules {
	readonly library: CelLibrary;
	readonly stringFunctions: typeof import('@bufbuild/cel/ext')['strings'];
}

/** Node's `require`. Defined only in the binary, whose bundle cannot load modules with `createRequire`. */
declare const require: ((name: string) => unknown) | undefined;

/** Loads the library synchronously, because sites are compiled synchronously. Later calls return the loaded library. */
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

/**
 * The root folder in which the files for a request are looked up: a configured path, which may have placeholders, or the variable
 * `root`.
 */
import { resolve } from 'node:path';
import type { Exchange } from '../../exchange/exchange.ts';
import { HttpError } from '../../exchange/http-error.ts';
import type { CompileContext } from '../../modules/contract/compile-context.ts';

/**
 * Compiles a root to a function that returns its absolute path. If `root` is undefined, the function uses the variable `root` or,
 * if that is unset, the working directory.
 */
export function compileRoot(root: string | undefined, cx: CompileContext): (x: Exchange) => string {
	if (root === undefined) {
		const workingDirectory = resolve('.');
		// Most sites have a single root, so the path is resolved only when the variable changes.
		let lastVariable = '';
		let lastRoot = workingDirectory;
		return x => {
			const variable = x.variable('root');
			if (typeof variable !== 'string' || variable === '') return workingDirectory;
			if (variable !== lastVariable) {
				lastRoot = resolveRequestRoot(variable);
				lastVariable = variable;
			}
			return lastRoot;
		};
	}
	const template = cx.template(root, 'empty');
	if (template.constant === undefined) return x => resolveRequestRoot(template.render(x));
	const constant = resolve(template.constant);
	return () => constant;
}

/**
 * Resolves a root that may contain data from the client, such as a host named `..`. Throws HttpError if the root has a `..`
 * segment.
 */
function resolveRequestRoot(root: string): string {
	if (root.includes('/..') && root.split('/').includes('..', 1)) {
		throw new HttpError(400, 'The file root for this request contains `..`.');
	}
	return resolve(root);
}

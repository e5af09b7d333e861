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
		let lastRootVariable = '';
		let lastResolvedRoot = workingDirectory;
		return x => {
			const rootVariable = x.variable('root');
			if (typeof rootVariable !== 'string' || rootVariable === '') return workingDirectory;
			if (rootVariable !== lastRootVariable) {
				lastResolvedRoot = resolveRequestRoot(rootVariable);
				lastRootVariable = rootVariable;
			}
			return lastResolvedRoot;
		};
	}
	const template = cx.template(root, 'empty');
	if (template.constant === undefined) return x => resolveRequestRoot(template.render(x));
	const constantRoot = resolve(template.constant);
	return () => constantRoot;
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

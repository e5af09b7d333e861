/** The folder that files of a request are below: as written, by its placeholders, or the variable `root`. */
import { resolve } from 'node:path';
import type { Exchange } from '../exchange/exchange.ts';
import { HttpError } from '../exchange/http-error.ts';
import type { CompileContext } from './compile-context.ts';

/** Compiles a root. Without one it is the variable `root`, or the working directory. */
export function compileRoot(root: string | undefined, cx: CompileContext): (x: Exchange) => string {
	if (root === undefined) {
		const workingDirectory = resolve('.');
		// Most sites have one root: what it resolves to is worked out again only when the variable holds another text.
		let last = '';
		let lastRoot = workingDirectory;
		return x => {
			const variable = x.variable('root');
			if (typeof variable !== 'string' || variable === '') return workingDirectory;
			if (variable !== last) {
				lastRoot = rootOfRequest(variable);
				last = variable;
			}
			return lastRoot;
		};
	}
	const template = cx.template(root, 'empty');
	if (template.constant === undefined) return x => rootOfRequest(template.render(x));
	const constant = resolve(template.constant);
	return () => constant;
}

/** A root that may hold what the client sent, such as a host named `..`: it must not climb out of the folders before it. */
function rootOfRequest(root: string): string {
	if (root.includes('/..') && root.split('/').includes('..', 1)) {
		throw new HttpError(400, 'The root of files for this request holds `..`.');
	}
	return resolve(root);
}

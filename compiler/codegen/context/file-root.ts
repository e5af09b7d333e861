/** The root folder for a request's files: as written, with placeholders, or from the variable `root`. */
import { resolve } from 'node:path';
import type { Exchange } from '../../exchange/exchange.ts';
import { HttpError } from '../../exchange/http-error.ts';
import type { CompileContext } from '../../modules/contract/compile-context.ts';

/** Compiles a root. If undefined, it is the variable `root` or, if that is unset, the working directory. */
export function compileRoot(root: string | undefined, cx: CompileContext): (x: Exchange) => string {
	if (root === undefined) {
		const workingDirectory = resolve('.');
		// Most sites have one root, so it is resolved again only if the variable changes.
		let lastVariable = '';
		let lastRoot = workingDirectory;
		return x => {
			const variable = x.variable('root');
			if (typeof variable !== 'string' || variable === '') return workingDirectory;
			if (variable !== lastVariable) {
				lastRoot = rootOfRequest(variable);
				lastVariable = variable;
			}
			return lastRoot;
		};
	}
	const template = cx.template(root, 'empty');
	if (template.constant === undefined) return x => rootOfRequest(template.render(x));
	const constant = resolve(template.constant);
	return () => constant;
}

/** Checks a root that contains data from the client, such as a host named `..`. The root must not lead out of its parent folder. */
function rootOfRequest(root: string): string {
	if (root.includes('/..') && root.split('/').includes('..', 1)) {
		throw new HttpError(400, 'The file root for this request contains `..`.');
	}
	return resolve(root);
}

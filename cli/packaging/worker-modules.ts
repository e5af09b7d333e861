/**
 * Shortens the definitions of directives and matchers for the bundle of worker threads. Workers only compile documents that the
 * compile thread has checked, so they need neither the documentation, nor the functions that lower text, nor the schemas. Code
 * that only these use is not bundled either, so a worker starts faster and takes less memory.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'esbuild';
import { replaceMembers } from './definition-members.ts';

const COMPILER_FOLDER = path.resolve(import.meta.dirname, '../../compiler') + path.sep;

/** The names of the members of definitions that workers never use, as a regular expression. */
const UNUSED_MEMBERS = 'documentation|lower|schema|summary';

/**
 * Returns a module without the unused members of its definitions.
 *
 * @param source TypeScript.
 */
export function withoutUnusedMembers(source: string): string {
	return replaceMembers(source, UNUSED_MEMBERS, () => '');
}

/** Bundles the modules of the compiler without {@link UNUSED_MEMBERS}. */
export const WORKER_MODULES_PLUGIN: Plugin = {
	name: 'worker-modules',
	setup(builder) {
		// Modules of the compiler do nothing when they are evaluated, so those whose exports are not used are left out.
		builder.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path: specifier, resolveDir, namespace }) => {
			const file = path.join(resolveDir, specifier);
			return namespace === 'file' && file.startsWith(COMPILER_FOLDER) ? { path: file, sideEffects: false } : undefined;
		});
		builder.onLoad({ filter: /\/compiler\/modules\/(?:directives|matchers)\/.*\.ts$/ }, args => ({
			contents: withoutUnusedMembers(readFileSync(args.path, 'utf8')),
			// Makes esbuild omit the imports that only the removed members used. In JavaScript, it would keep them.
			loader: 'ts',
		}));
	},
};

/**
 * Shortens the definitions of directives and matchers for the bundle of worker threads. Workers only compile documents that the
 * compile thread has checked, so they need neither the documentation, nor the functions that lower text, nor the schemas. Code
 * that only these use is not bundled either, so a worker starts faster and takes less memory.
 */
import { readFileSync } from 'node:fs';
import { type Plugin, transformSync } from 'esbuild';

/** The names of the members of definitions that workers never use, as a regular expression. */
const UNUSED_MEMBERS = 'documentation|lower|schema|summary';

/**
 * The beginning of an unused member. esbuild prints the statements of a module without indentation, and each member of a definition
 * on lines of its own, indented by two spaces.
 */
const MEMBER_START = new RegExp(`^ {2}(?:${UNUSED_MEMBERS})(?::|\\()`);

/** A further line of a member. Its last line is a bracket that is indented like its first line. */
const MEMBER_CONTINUATION = /^ {3}|^ {2}[\])}]/;

/**
 * Returns a module without the unused members of its definitions.
 *
 * @param source TypeScript.
 */
export function withoutUnusedMembers(source: string): string {
	const { code } = transformSync(source, { loader: 'ts', target: 'esnext' });
	let isUnused = false;
	let isInTemplate = false;
	const usedLines = code.split('\n').filter(line => {
		// Inside a template literal, a line may look like the beginning of a member by chance.
		if (!isInTemplate) isUnused = MEMBER_START.test(line) || (isUnused && MEMBER_CONTINUATION.test(line));
		if (hasOpenTemplate(line, isInTemplate)) isInTemplate = !isInTemplate;
		return !isUnused;
	});
	return usedLines.join('\n');
}

/**
 * Reports whether a line begins or ends a template literal that spans several lines. `isInTemplate` says whether the line begins
 * inside one.
 */
function hasOpenTemplate(line: string, isInTemplate: boolean): boolean {
	const withoutEscapes = line.replaceAll(/\\./g, '');
	const withoutStrings = isInTemplate ? withoutEscapes : withoutEscapes.replaceAll(/"[^"]*"/g, '');
	return withoutStrings.split('`').length % 2 === 0;
}

/** Bundles the modules of the compiler without {@link UNUSED_MEMBERS}. */
export const WORKER_MODULES_PLUGIN: Plugin = {
	name: 'worker-modules',
	setup(builder) {
		builder.onLoad({ filter: /\/compiler\/modules\/(?:directives|matchers)\/.*\.ts$/ }, args => ({
			contents: withoutUnusedMembers(readFileSync(args.path, 'utf8')),
			// Makes esbuild omit the imports that only the removed members used. In JavaScript, it would keep them.
			loader: 'ts',
		}));
	},
};

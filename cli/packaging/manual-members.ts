/**
 * Makes the manual in the definitions of directives, matchers, options, providers and lint rules cost nothing until somebody reads
 * it. Otherwise, its thousands of lines would be created at each start, because most definitions join them.
 */
import { readFileSync } from 'node:fs';
import type { Plugin } from 'esbuild';
import { replaceMembers } from './definition-members.ts';

/**
 * Returns a module in which the members `documentation` of definitions are getters.
 *
 * @param source TypeScript.
 */
export function withManualsAsGetters(source: string): string {
	return replaceMembers(source, 'documentation', member => {
		const value = member.replace(/^ {2}documentation: /, '').replace(/,$/, '');
		return `  get documentation() { return ${value}; },`;
	});
}

/** Applies {@link withManualsAsGetters} to the modules with definitions. */
export const MANUAL_MEMBERS_PLUGIN: Plugin = {
	name: 'manual-members',
	setup(builder) {
		const filter = /\/compiler\/(?:modules\/(?:directives|matchers|options|providers)|lint\/rules)\/.*\.ts$/;
		builder.onLoad({ filter }, ({ path: file }) => ({
			contents: withManualsAsGetters(readFileSync(file, 'utf8')),
			loader: 'ts',
		}));
	},
};

/** Finds members of the definitions of modules (directives, matchers, options, …) in their sources, for the bundles. */
import { transformSync } from 'esbuild';

/**
 * A further line of a member. esbuild prints the statements of a module without indentation, and each member of a definition on
 * lines of its own, indented by two spaces. The last line of a member is a bracket that is indented like its first line.
 */
const MEMBER_CONTINUATION = /^ {3}|^ {2}[\])}]/;

/**
 * Returns a module with other members in its definitions.
 *
 * @param source TypeScript.
 * @param names The names of the members to replace, as a regular expression.
 * @param replace Returns what replaces a member, given as esbuild prints it, with the comma at its end.
 */
export function replaceMembers(source: string, names: string, replace: (member: string) => string): string {
	const { code } = transformSync(source, { loader: 'ts', target: 'esnext' });
	const memberStart = new RegExp(`^ {2}(?:${names})(?::|\\()`);
	const output: string[] = [];
	/** The lines of the member that is being read. */
	let member: string[] | undefined;
	let isInTemplate = false;
	for (const line of code.split('\n')) {
		// Inside a template literal, a line may look like the beginning or the end of a member by chance.
		if (!isInTemplate) {
			if (member && !MEMBER_CONTINUATION.test(line)) {
				output.push(replace(member.join('\n')));
				member = undefined;
			}
			if (memberStart.test(line)) member = [];
		}
		if (hasOpenTemplate(line, isInTemplate)) isInTemplate = !isInTemplate;
		(member ?? output).push(line);
	}
	return output.join('\n');
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

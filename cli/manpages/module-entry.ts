/** The reference entries of directives, matchers and global options, for `svc help`. */
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';
import { spellingText } from './configfile-page.ts';

/** The parts of a module's definition that document it. */
interface DocumentedModule {
	readonly id: string;
	readonly names?: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	readonly usage?: string;
	readonly summary: string;
	readonly documentation: string;
}

const MODULES_BY_KIND: readonly (readonly [kind: string, modules: readonly DocumentedModule[]])[] = [
	['directive', directives],
	['matcher', matchers],
	['global option', options],
];

/** Returns the reference entries of a word, as Markdown; undefined if no module has this name in either language. */
export function moduleEntry(word: string): string | undefined {
	const entries = MODULES_BY_KIND.flatMap(([kind, modules]) =>
		modules.filter(module => namesOf(module).includes(word)).map(module => entryText(word, kind, module)),
	);
	return entries.length === 0 ? undefined : entries.join('\n\n');
}

/** Returns the names of all modules, for suggestions. */
export function moduleNames(): string[] {
	return [...new Set(MODULES_BY_KIND.flatMap(([, modules]) => modules.flatMap(namesOf)))];
}

/** Returns the names of a module in both languages. The name of a matcher is its ID. */
function namesOf({ id, names }: DocumentedModule): readonly string[] {
	return names ? [...names.configfile, ...names.compatfile] : [id];
}

function entryText(word: string, kind: string, { names, usage, summary, documentation }: DocumentedModule): string {
	const parts = [`# ${word} (${kind})`, summary];
	if (usage !== undefined) parts.push(`\`\`\`usage\n${usage}\n\`\`\``);
	parts.push(documentation);
	const spellingNote = names ? spellingText({ names }) : '';
	if (spellingNote !== '') parts.push(spellingNote);
	return parts.join('\n\n');
}

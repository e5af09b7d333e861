/** `svc-configfile.5`: the language, with the documentation of every directive, matcher and global option from its definition. */

import { lintRules } from '../../compiler/lint/index.ts';
import { balancers } from '../../compiler/modules/providers/balancers/index.ts';
import { dnsProviders } from '../../compiler/modules/providers/dns/index.ts';
import { issuers } from '../../compiler/modules/providers/issuers/index.ts';
import { stores } from '../../compiler/modules/providers/stores/index.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';
import { LANGUAGE_TEXT, LINT_TEXT } from '../manual/language-text.ts';
import { listedPlaceholders } from './reference-lists.ts';
import {
	boldCode,
	codeParagraph,
	listEntry,
	type ManualPage,
	paragraph,
	renderMarkdown,
	sectionHeading,
	subsectionHeading,
} from './roff.ts';

/** The parts of a definition that document it. */
interface DocumentedModule {
	readonly names: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	readonly usage: string;
	readonly summary: string;
	readonly documentation: string;
}

/** Generates the page from the registries. */
export function configfilePage(): ManualPage {
	return {
		name: 'svc-configfile',
		section: 5,
		summary: 'configuration of svc',
		body: [
			...sectionHeading('Description'),
			...renderMarkdown(LANGUAGE_TEXT),
			...sectionHeading('Global options'),
			...options
				.map(option =>
					hasDirectiveName(option)
						? option
						: { ...option, names: { configfile: [option.id], compatfile: [option.id] } },
				)
				.sort(compareByName)
				.flatMap(definitionLines),
			...sectionHeading('Directives'),
			...directives.filter(hasDirectiveName).sort(compareByName).flatMap(definitionLines),
			...sectionHeading('Matchers'),
			...matchers.flatMap(({ id, ...matcher }) =>
				definitionLines({ names: { configfile: [id], compatfile: [id] }, ...matcher }),
			),
			...sectionHeading('Placeholders'),
			...listedPlaceholders().flatMap(([placeholder, meaning]) => listEntry(`\`${placeholder}\``, meaning)),
			...sectionHeading('Balancing policies'),
			...balancers.flatMap(({ id, ...balancer }) =>
				definitionLines({ names: { configfile: [id], compatfile: [id] }, ...balancer }),
			),
			...sectionHeading('Certificate issuers'),
			...issuers.flatMap(module => definitionLines(withNames(module))),
			...sectionHeading('DNS providers'),
			...dnsProviders.flatMap(module => definitionLines(withNames(module))),
			...sectionHeading('Stores'),
			...stores.flatMap(module => definitionLines(withNames(module))),
			...sectionHeading('Handlers without a directive'),
			...paragraph('These handlers occur only in the JSON document that `svc adapt` prints.'),
			...directives
				.filter(directive => !hasDirectiveName(directive))
				.flatMap(directive =>
					definitionLines({ ...directive, names: { configfile: [directive.id], compatfile: [directive.id] } }),
				),
			...sectionHeading('Lint rules'),
			...renderMarkdown(LINT_TEXT),
			...lintRules.flatMap(rule => [
				...subsectionHeading(rule.name),
				...paragraph(rule.severity === 'note' ? `${rule.summary} A note.` : rule.summary),
				...renderMarkdown(rule.documentation),
			]),
			...sectionHeading('Files'),
			...paragraph(
				'A file is JSON if its name ends in `.json`, a Compatfile if its name begins with `caddyfile` or `compatfile` or ends in `.caddyfile` or `.compatfile`, ignoring case, and otherwise a Configfile.',
			),
			...sectionHeading('See also'),
			['svc', 'svc-validate', 'svc-explain', 'svc-fmt'].map(page => `${boldCode(page)}(1)`).join(',\n'),
		],
	};
}

/** Adds `names` to a module whose ID is also its name in both languages. */
function withNames<T extends { readonly id: string }>(module: T): T & Pick<DocumentedModule, 'names'> {
	return { ...module, names: { configfile: [module.id], compatfile: [module.id] } };
}

function hasDirectiveName({ names }: Pick<DocumentedModule, 'names'>): boolean {
	return names.configfile.length + names.compatfile.length > 0;
}

/** Returns the name that users write in a configuration. */
function nameOf({ names }: Pick<DocumentedModule, 'names'>): string {
	return names.configfile[0] ?? names.compatfile[0]!;
}

function compareByName(a: Pick<DocumentedModule, 'names'>, b: Pick<DocumentedModule, 'names'>): number {
	return nameOf(a) < nameOf(b) ? -1 : 1;
}

/** Renders a definition: its usage, summary and documentation. */
function definitionLines(definition: DocumentedModule): string[] {
	const spellingNote = spellingText(definition);
	return [
		...subsectionHeading(nameOf(definition)),
		...codeParagraph(definition.usage),
		...paragraph(definition.summary),
		...renderMarkdown(definition.documentation),
		...(spellingNote === '' ? [] : paragraph(spellingNote)),
	];
}

/** Describes the spellings of a module's name: aliases, and names that exist in only one language. */
export function spellingText({ names }: Pick<DocumentedModule, 'names'>): string {
	const codeList = (words: readonly string[]): string => words.map(word => `\`${word}\``).join(', ');
	if (names.compatfile.length === 0) return 'Not available in a Compatfile.';
	if (names.configfile.length === 0) return 'Only in a Compatfile.';
	const name = names.configfile[0]!;
	const aliases = names.configfile.slice(1);
	const compatfileOnly = names.compatfile.filter(word => word !== name && !aliases.includes(word));
	const sentences: string[] = [];
	if (aliases.length > 0) sentences.push(`Also spelled ${codeList(aliases)}.`);
	if (compatfileOnly.length > 0) {
		sentences.push(`In a Compatfile ${names.compatfile.includes(name) ? 'also ' : ''}${codeList(compatfileOnly)}.`);
	}
	return sentences.join(' ');
}

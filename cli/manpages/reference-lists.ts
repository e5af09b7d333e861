/**
 * Lists of the words that a configuration may contain, with their meanings, for `svc help options`, `svc help matchers` and
 * `svc help placeholders`.
 */
import { placeholders } from '../../compiler/codegen/placeholders/index.ts';
import { abbreviatePlaceholders } from '../../compiler/codegen/placeholders/shorthands.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';

/** A list that `svc help NAME` prints for any of its names. */
interface ReferenceList {
	readonly names: readonly string[];
	readonly title: string;
	readonly introduction: string;
	/** Returns the words of the list with their meanings, as Markdown. */
	rows(): readonly (readonly [word: string, meaning: string])[];
}

/** Members of placeholder families (see `definePlaceholderFamily`) that are used often enough to have rows of their own. */
const LISTED_FAMILY_MEMBERS = [
	['client_ip', 'Address of the client: that of the peer, or the one that a trusted proxy names.'],
	['upstream_hostport', 'Address of the upstream to which the request was sent.'],
] as const;

const LISTS: readonly ReferenceList[] = [
	{
		names: ['options', 'global options'],
		title: 'Global options',
		introduction:
			'A block without a name, first in the file, holds the global options. `svc help http_port` describes one of them.',
		rows: () =>
			options.flatMap(({ names, summary }) => names.configfile.slice(0, 1).map(name => [name, summary] as const)),
	},
	{
		names: ['matchers'],
		title: 'Matchers',
		introduction:
			'Conditions on requests. Write them after `when` or in `@name`, and combine them with `and`, `or` and `not`. `svc help path_regexp` describes one of them.',
		rows: () => matchers.map(({ id, summary }) => [id, summary]),
	},
	{
		names: ['placeholders'],
		title: 'Placeholders',
		introduction:
			'Words in braces are filled in for each request. A final `*` stands for a name or number of your choice: `{header.User-Agent}`.',
		rows: listedPlaceholders,
	},
];

/** Returns, as Markdown, the list that a name such as `options` stands for; undefined if it stands for none. */
export function referenceList(name: string): string | undefined {
	const list = LISTS.find(({ names }) => names.includes(name));
	return list && `# ${list.title}\n\n${list.introduction}\n\n${tableOf(list)}`;
}

/** Returns the names of all lists, for suggestions. */
export function referenceListNames(): string[] {
	return LISTS.flatMap(({ names }) => names);
}

function tableOf({ rows }: ReferenceList): string {
	const lines = rows().map(([word, meaning]) => `| \`${word}\` | ${meaning.replaceAll('|', '\\|')} |`);
	return ['| Word | Meaning |', '| --- | --- |', ...lines].join('\n');
}

/** Returns all placeholders, abbreviated where possible, with their meanings. */
export function listedPlaceholders(): (readonly [placeholder: string, meaning: string])[] {
	return [
		...LISTED_FAMILY_MEMBERS.map(([name, meaning]) => [`{${name}}`, meaning] as const),
		...placeholders.map(({ name, summary }) => [abbreviatePlaceholders(`{${name}}`), summary] as const),
	];
}

/** The pages of the reference, generated from the modules, the commands and the Admin API. */
import { ENDPOINTS } from '../../admin/endpoints.ts';
import { ADMIN_ERRORS } from '../../admin/errors.ts';
import { placeholders } from '../../compiler/codegen/placeholders/index.ts';
import { abbreviatePlaceholders } from '../../compiler/codegen/placeholders/shorthands.ts';
import { lintRules } from '../../compiler/lint/index.ts';
import { balancers } from '../../compiler/modules/providers/balancers/index.ts';
import { dnsProviders } from '../../compiler/modules/providers/dns/index.ts';
import { issuers } from '../../compiler/modules/providers/issuers/index.ts';
import { stores } from '../../compiler/modules/providers/stores/index.ts';
import { directives } from '../../compiler/modules/registry/directives.ts';
import { matchers } from '../../compiler/modules/registry/matchers.ts';
import { options } from '../../compiler/modules/registry/options.ts';
import { SERIES_FAMILIES } from '../../runtime/metrics/families.ts';
import { HTTP2_LABELED_FAMILIES } from '../../runtime/metrics/http2-counters.ts';
import { HTTP3_LABELED_FAMILIES } from '../../runtime/metrics/http3-counters.ts';
import { REFUSAL_FAMILIES } from '../../runtime/metrics/refusals.ts';
import type { Command } from '../command/command.ts';
import { spellingText } from '../manpages/configfile-page.ts';
import { LANGUAGE_TEXT, LINT_TEXT } from '../manual/language-text.ts';
import { type Page, type PageSection, toSlug } from './page.ts';

export const REFERENCE_GROUP = 'Reference';
export const DIRECTIVES_GROUP = 'Directives';

/**
 * Weights of the words of the reference in a search: half of those in guides, because a guide better answers a question in everyday
 * words. The name of a directive weighs more, because whoever searches for it means the directive.
 */
const SEARCH_WEIGHTS = { name: 4, directive: 8, summary: 1, text: 0.5 } as const;

/** The parts of a module's definition that document it. */
interface DocumentedModule {
	readonly id: string;
	readonly names?: { readonly configfile: readonly string[]; readonly compatfile: readonly string[] };
	readonly usage?: string;
	readonly summary: string;
	readonly documentation: string;
}

export function referencePages(commands: readonly Command[]): Page[] {
	const namedDirectives = directives.filter(({ names }) => names.configfile.length + names.compatfile.length > 0);
	return [
		{ ...createPage('language', 'The language', LANGUAGE_TEXT), files: new Map() },
		createPage(
			'options',
			'Global options',
			'What a block without a name, first in the file, may hold.',
			options.map(moduleSection),
		),
		createPage(
			'matchers',
			'Matchers',
			'Conditions on requests, for `when`, `@name` and expressions.',
			matchers.map(moduleSection),
		),
		createPage(
			'placeholders',
			'Placeholders',
			'Words in braces are filled in for each request: `{path}`. A final `*` is a parameter.',
			placeholders.map(({ name, summary }) => {
				const [title, fullName] = [abbreviatePlaceholders(`{${name}}`), `{${name}}`];
				const fullNameNote = title === fullName ? [] : [`The full name is \`${fullName}\`.`];
				return { ...createSection(name, summary, fullNameNote), title };
			}),
		),
		createPage(
			'policies',
			'Balancing policies',
			'How `lb_policy` chooses among several upstreams.',
			balancers.map(moduleSection),
		),
		createPage(
			'providers',
			'Issuers, DNS providers and stores',
			'Where certificates come from, how DNS challenges are solved, and where keys and certificates are kept.',
			[...issuers, ...dnsProviders, ...stores].map(moduleSection),
		),
		createPage(
			'lint-rules',
			'Lint rules',
			LINT_TEXT,
			lintRules.map(({ name, summary, documentation }) => createSection(name, summary, [documentation])),
		),
		createPage('commands', 'Commands', 'Each command prints this with `--help`.', commands.map(commandSection)),
		createPage(
			'admin-api',
			'Admin API',
			'Requests to the address of the global option `admin`. `GET /openapi.json` returns the same as OpenAPI 3.1, with all schemas. ' +
				'Every error has the form `{"error":{"code","message","diagnostics":[…]}}`; the last section lists the codes.',
			adminSections(),
		),
		createPage('metrics', 'Metrics', METRICS_TEXT, metricSections()),
		...namedDirectives
			.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
			.map(directive => directivePage({ ...directive })),
	];
}

const METRICS_TEXT =
	'The families with labels about requests, upstreams and refused clients. `GET /metrics` describes these and all others, about ' +
	'threads, files, caches, certificates and the process, in its `# HELP` lines. With the option `metrics`, families about requests are collected.';

function createPage(name: string, title: string, introduction: string, sections: readonly PageSection[] = []): Page {
	return {
		path: `reference/${name}.html`,
		title,
		group: REFERENCE_GROUP,
		sections: [
			{
				id: '',
				title,
				markdown: introduction,
				searchTexts: [
					[title, SEARCH_WEIGHTS.name],
					[introduction, SEARCH_WEIGHTS.text],
				],
			},
			...sections,
		],
	};
}

function createSection(name: string, summary: string, details: readonly string[]): PageSection {
	return {
		id: toSlug(name.replaceAll('*', 'any')),
		title: name,
		markdown: [summary, ...details].join('\n\n'),
		searchTexts: [
			[name, SEARCH_WEIGHTS.name],
			[summary, SEARCH_WEIGHTS.summary],
			[details.join('\n'), SEARCH_WEIGHTS.text],
		],
	};
}

function nameOf({ id, names }: DocumentedModule): string {
	return names?.configfile[0] ?? names?.compatfile[0] ?? id;
}

function moduleSection(module: DocumentedModule): PageSection {
	return createSection(nameOf(module), module.summary, detailsOf(module));
}

function detailsOf({ usage, documentation, names }: DocumentedModule): string[] {
	const spellingNote = names && names.configfile.length + names.compatfile.length > 0 ? spellingText({ names }) : '';
	return [...(usage === undefined ? [] : [`\`\`\`usage\n${usage}\n\`\`\``]), documentation, spellingNote];
}

function directivePage(directive: DocumentedModule): Page {
	const name = nameOf(directive);
	const introduction = moduleSection(directive);
	return {
		path: `directives/${toSlug(name)}.html`,
		title: name,
		group: DIRECTIVES_GROUP,
		sections: [
			{
				...introduction,
				id: '',
				searchTexts: [[name, SEARCH_WEIGHTS.directive], ...introduction.searchTexts.slice(1)],
			},
		],
	};
}

/** Returns a code span, even if the text contains backquotes. */
function codeSpan(text: string): string {
	return `\`\`${text.startsWith('`') || text.endsWith('`') ? ` ${text} ` : text}\`\``;
}

/** Escapes a text for a cell of a Markdown table. */
function escapeCell(text: string): string {
	return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function markdownTable(head: readonly [string, string], rows: readonly (readonly [string, string])[]): string {
	if (rows.length === 0) return '';
	return [head, ['---', '---'], ...rows].map(row => `| ${row.map(escapeCell).join(' | ')} |`).join('\n');
}

function commandSection({ name, summary, details, args, options: definedOptions }: Command): PageSection {
	const visibleOptions = (definedOptions ?? []).filter(option => !option.internal);
	const usage = [
		`svc ${name} [OPTIONS]`,
		...visibleOptions.filter(({ required }) => required).map(option => `--${option.name} <${option.valueName}>`),
		...(args ?? []).map(
			argument =>
				`${argument.required ? `<${argument.name}>` : `[${argument.name}]`}${argument.repeatable ? '...' : ''}`,
		),
	].join(' ');
	const rows = visibleOptions.map(option => {
		const value = option.valueName ? (option.valueOptional ? `[=${option.valueName}]` : ` <${option.valueName}>`) : '';
		const spelling = `${option.short ? `-${option.short}, ` : ''}--${option.name}${value}`;
		const defaultText = option.default === undefined ? '' : ` Default: ${option.default}.`;
		return [codeSpan(spelling), `${option.summary}.${defaultText}`] as const;
	});
	return createSection(name, `${summary}.`, [
		`\`\`\`usage\n${usage}\n\`\`\``,
		...(details ?? []),
		markdownTable(
			['Argument', 'Meaning'],
			(args ?? []).map(argument => [codeSpan(argument.name), `${argument.summary}.`]),
		),
		markdownTable(['Option', 'Meaning'], rows),
	]);
}

function adminSections(): PageSection[] {
	const requestSections = ENDPOINTS.flatMap(endpoint =>
		Object.entries(endpoint.describedPaths ?? { [endpoint.path]: {} }).flatMap(([path, parameters]) =>
			Object.entries(endpoint.operationsByMethod).map(([method, operation]) => {
				const query = Object.entries(operation.query ?? {});
				return createSection(`${method} ${path}`, operation.summary, [
					markdownTable(
						['Parameter', 'Meaning'],
						[
							...Object.entries(parameters).map(([name, text]) => [codeSpan(name), text] as const),
							...query.map(([name, { description }]) => [codeSpan(`?${name}`), description] as const),
							...(operation.requestFields ?? []).map(
								name => [codeSpan(name), 'Makes the request conditional.'] as const,
							),
						],
					),
					operation.body ? `Body: ${Object.keys(operation.body).map(codeSpan).join(', ')}.` : '',
					`Answer: ${operation.answer.description}`,
					operation.errors ? `Errors: ${operation.errors.map(codeSpan).join(', ')}.` : '',
				]);
			}),
		),
	);
	const errorRows = Object.entries(ADMIN_ERRORS).map(
		([name, { status, description }]) => [codeSpan(name), `${status}. ${description}`] as const,
	);
	return [
		...requestSections,
		createSection('Error codes', 'The `code` of an error is stable.', [markdownTable(['Code', 'Meaning'], errorRows)]),
	];
}

function metricSections(): PageSection[] {
	return [
		...SERIES_FAMILIES.map(({ name, help, type }) => createSection(name, help, [`A ${type}.`])),
		...[...REFUSAL_FAMILIES, ...HTTP2_LABELED_FAMILIES, ...HTTP3_LABELED_FAMILIES].map(({ name, help, label, slots }) =>
			createSection(name, help, [
				`A counter. The label ${codeSpan(label)} is one of ${slots.map(([value]) => codeSpan(value)).join(', ')}.`,
			]),
		),
	];
}

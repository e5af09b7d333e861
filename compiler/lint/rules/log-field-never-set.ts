/** The lint rule `log/field-never-set`. */
import { nearestName, suggestName } from '../../diagnostics/suggest.ts';
import type { SiteLog } from '../../document/document.ts';
import type { LogFormat } from '../../document/log-settings.ts';
import {
	ENTRY_FIELDS,
	FILTERED_FIELDS,
	isEntryField,
	isFilteredField,
} from '../../modules/providers/log-formats/entry-fields.ts';
import { fieldsInLogText, shorthandsOfLogText } from '../../modules/providers/log-formats/log-text.ts';
import { escapePointer } from '../../schema/validate.ts';
import { traitsOf } from '../inspection/answering.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports fields in `format text` and `format filter` that no entry has, because they are misspelled or nothing adds them. */
export const logFieldNeverSet: LintRule = {
	name: 'log/field-never-set',
	severity: 'warning',
	summary: 'A log format writes or filters a field that no entry has.',
	documentation: [
		'In `format text`, `{stauts}` is the field `stauts` of an entry. No entry has it, so that every line has `-` in its place.',
		'Correct the name, or add the field with `log_append`. In `format filter`, `client_ip ip_mask 16` changes nothing: the',
		'address is in `request>client_ip`, and is written in full.',
	].join('\n'),
	ofConfigfile: true,
	check: cx => {
		const logs = logsOf(cx);
		const added = [
			...cx.walked.steps.flatMap(({ step }) => traitsOf(step).logFieldsOf?.(step) ?? []),
			...logs.flatMap(({ format }) => fieldsAddedBy(format)),
		];
		const paths = new Set(added.map(path => path.toLowerCase()));
		const writable = [...ENTRY_FIELDS, ...shorthandsOfLogText(), ...added];
		const filtered = [...FILTERED_FIELDS, ...added];
		const reported = new Set<string>();
		const report = ({ pointer, text, meant, message, hint }: UnsetField): void => {
			const span = cx.span(pointer, text);
			// Several sites may import the same log.
			const place = span ? `${span.source.name}:${span.start} ${text}` : `${pointer} ${text}`;
			if (reported.has(place)) return;
			reported.add(place);
			const { label, fix } = span ? suggestName({ text, span }, meant) : {};
			const instead = meant ? (span ? undefined : `Did you mean \`${meant}\`?`) : hint;
			cx.at(pointer, message, { words: text, label, hint: instead, fix });
		};
		for (const { format, pointer, onlyAccess } of logs) {
			for (const { name, path } of fieldsInLogText(textOf(format))) {
				if (isEntryField(path, paths)) continue;
				const nearest = nearestField(name, writable);
				const message = `No entry of an access log has a field \`${name}\`.`;
				report({ pointer, text: `{${name}}`, meant: nearest && `{${nearest}}`, message, hint: ADD_FIELD });
			}
			// Entries of other kinds have any fields.
			if (!onlyAccess) continue;
			const filters = filtersOf(format, `${pointer}/format`);
			const free = filtered.filter(field => !filters.some(({ path }) => path === field));
			for (const { path: field, pointer } of filters) {
				const path = field.toLowerCase().split('>');
				if (isFilteredField(path, paths)) continue;
				const isWritten = isEntryField(path, paths);
				const message = isWritten
					? `Filters do not change the field \`${field}\`.`
					: `No entry of an access log has a field \`${field}\`, so the filter changes nothing.`;
				const meant = isWritten ? undefined : nearestField(field, free);
				report({ pointer, text: field, meant, message, hint: isWritten ? OMIT_KEY : FIELD_PATH });
			}
		}
	},
};

const ADD_FIELD = 'Correct the name, or add the field with `log_append NAME VALUE`.';
const FIELD_PATH =
	'Write the path of a field in an entry as JSON, such as `request>headers>Cookie`, or remove the line.';
const OMIT_KEY =
	'The formats `json` and `console` rename or omit it: `message_key`, `level_key`, `time_key`, `name_key`.';

/** A field in the format of a log that no entry has. */
interface UnsetField {
	/** JSON pointer of the log. */
	readonly pointer: string;
	/** The field as it is written. */
	readonly text: string;
	/** What was probably meant. */
	readonly meant: string | undefined;
	readonly message: string;
	/** The hint, if it is unknown what was meant. */
	readonly hint: string;
}

interface LocatedFormat {
	readonly format: LogFormat | undefined;
	/** JSON pointer of the log. */
	readonly pointer: string;
	/** True if the log gets entries of access logs only. */
	readonly onlyAccess: boolean;
}

function logsOf({ document }: LintContext): readonly LocatedFormat[] {
	const ofProcess = Object.entries(document.settings?.logs ?? {}).map(([name, log]) => ({
		format: log.format,
		pointer: `/settings/logs/${escapePointer(name)}`,
		onlyAccess: includesOnlyAccess(log),
	}));
	const ofSites = (document.sites ?? []).flatMap(({ logs = [] }, site) =>
		logs.map(({ format }, index) => ({ format, pointer: `/sites/${site}/logs/${index}`, onlyAccess: true })),
	);
	return [...ofProcess, ...ofSites];
}

function includesOnlyAccess({ include = [] }: Pick<SiteLog, 'include'>): boolean {
	return include.length > 0 && include.every(name => /^http\.log\.access(?:\.|$)/.test(name));
}

/** Returns the text of a text format, also if other formats wrap it; otherwise an empty string. */
function textOf(format: LogFormat | undefined): string {
	if (!format) return '';
	if (format.encoder === 'text') return format.text;
	return 'wrap' in format ? textOf(format.wrap) : '';
}

/** Returns the paths of the fields that a format adds, or that it gives to other fields. */
function fieldsAddedBy(format: LogFormat | undefined): string[] {
	if (!format || !('wrap' in format || 'fields' in format)) return [];
	const inner = fieldsAddedBy(format.wrap);
	if (format.encoder === 'append') return [...Object.keys(format.fields), ...inner];
	if (format.encoder !== 'filter') return inner;
	const renamed = Object.entries(format.fields).flatMap(([path, one]) =>
		one.filter === 'rename' ? [path.slice(0, path.lastIndexOf('>') + 1) + one.name] : [],
	);
	return [...renamed, ...inner];
}

interface LocatedFilter {
	/** Path of the field. */
	readonly path: string;
	readonly pointer: string;
}

/** Returns the filters of a format at a JSON pointer, and of those that it wraps. */
function filtersOf(format: LogFormat | undefined, pointer: string): LocatedFilter[] {
	if (!format || !('wrap' in format || 'fields' in format)) return [];
	const inner = filtersOf(format.wrap, `${pointer}/wrap`);
	if (format.encoder !== 'filter') return inner;
	const own = Object.keys(format.fields).map(path => ({ path, pointer: `${pointer}/fields/${escapePointer(path)}` }));
	return [...own, ...inner];
}

/** Returns the known field that a path was probably meant to name. Known fields may end with `*`, which stands for any name. */
function nearestField(path: string, known: readonly string[]): string | undefined {
	const last = path.slice(path.lastIndexOf('>') + 1);
	const isNested = last !== path;
	const fields = known.flatMap(field => {
		if (!field.endsWith('*')) return [field];
		return isNested ? [field.slice(0, -1) + last] : [field.slice(0, -2)];
	});
	// The most frequent mistake is a path without its first part.
	const nested = fields.find(field => field.toLowerCase().endsWith(`>${path.toLowerCase()}`));
	return nested ?? nearestName(path, fields);
}

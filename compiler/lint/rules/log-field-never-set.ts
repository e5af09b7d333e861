/**
 * The lint rule `log/field-never-set`, which reports fields in `format text` and `format filter` that no log entry has. Such a
 * field is misspelled, or nothing adds it.
 */
import { nearestName, suggestName } from '../../diagnostics/suggest.ts';
import type { SiteLog } from '../../document/document.ts';
import { escapePointer } from '../../document/json-pointer.ts';
import type { LogFormat } from '../../document/log-settings.ts';
import {
	ENTRY_FIELD_PATHS,
	FILTERABLE_PATHS,
	isEntryField,
	isFilterableField,
} from '../../modules/providers/log-formats/entry-fields.ts';
import { fieldsInLogText, shorthandsOfLogText } from '../../modules/providers/log-formats/log-text.ts';
import { traitsOf } from '../inspection/answering.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

export const logFieldNeverSet: LintRule = {
	name: 'log/field-never-set',
	severity: 'warning',
	summary: 'A log format writes or filters a field that no entry has.',
	documentation: [
		'In `format text`, `{stauts}` is the field `stauts` of an entry. No entry has it, so that every line has `-` in its place.',
		'Correct the name, or add the field with `log_append`. In `format filter`, `client_ip ip_mask 16` changes nothing: the',
		'address is in `request>client_ip`, and is written in full.',
	].join('\n'),
	checkedForConfigfile: true,
	check: cx => {
		const formats = logFormatsOf(cx);
		const addedFields = [
			...cx.walkedDocument.steps.flatMap(({ step }) => traitsOf(step).logFieldsOf?.(step) ?? []),
			...formats.flatMap(({ format }) => fieldsAddedBy(format)),
		];
		const addedPaths = new Set(addedFields.map(path => path.toLowerCase()));
		const writableFields = [...ENTRY_FIELD_PATHS, ...shorthandsOfLogText(), ...addedFields];
		const filterableFields = [...FILTERABLE_PATHS, ...addedFields];
		const reportedKeys = new Set<string>();
		const reportField = ({ pointer, text, suggestion, message, hint }: UnsetField): void => {
			const span = cx.span(pointer, text);
			// Several sites may import the same log, which is reported once.
			const reportKey = span ? `${span.source.name}:${span.start} ${text}` : `${pointer} ${text}`;
			if (reportedKeys.has(reportKey)) return;
			reportedKeys.add(reportKey);
			const { label, fix } = span ? suggestName({ text, span }, suggestion) : {};
			const fullHint = suggestion ? (span ? undefined : `Did you mean \`${suggestion}\`?`) : hint;
			cx.reportAt(pointer, message, { words: text, label, hint: fullHint, fix });
		};
		for (const { format, pointer, onlyAccess } of formats) {
			for (const { name, path } of fieldsInLogText(textTemplateOf(format))) {
				if (isEntryField(path, addedPaths)) continue;
				const suggestedName = nearestField(name, writableFields);
				const message = `No entry of an access log has a field \`${name}\`.`;
				reportField({
					pointer,
					text: `{${name}}`,
					suggestion: suggestedName && `{${suggestedName}}`,
					message,
					hint: ADD_FIELD_HINT,
				});
			}
			// Log entries other than those of access logs may have any field.
			if (!onlyAccess) continue;
			const filters = filtersOf(format, `${pointer}/format`);
			const unusedFields = filterableFields.filter(field => !filters.some(({ path }) => path === field));
			for (const { path: field, pointer } of filters) {
				const path = field.toLowerCase().split('>');
				if (isFilterableField(path, addedPaths)) continue;
				const isWritten = isEntryField(path, addedPaths);
				const message = isWritten
					? `Filters do not change the field \`${field}\`.`
					: `No entry of an access log has a field \`${field}\`, so the filter changes nothing.`;
				const suggestion = isWritten ? undefined : nearestField(field, unusedFields);
				reportField({ pointer, text: field, suggestion, message, hint: isWritten ? OMIT_KEY_HINT : FIELD_PATH_HINT });
			}
		}
	},
};

const ADD_FIELD_HINT = 'Correct the name, or add the field with `log_append NAME VALUE`.';
const FIELD_PATH_HINT =
	'Write the path of a field in an entry as JSON, such as `request>headers>Cookie`, or remove the line.';
const OMIT_KEY_HINT =
	'The formats `json` and `console` rename or omit it: `message_key`, `level_key`, `time_key`, `name_key`.';

/** A field that a log's format names although no entry of the log has it. */
interface UnsetField {
	/** JSON pointer of the log. */
	readonly pointer: string;
	/** The field as it is written in the configuration. */
	readonly text: string;
	/** The field that was probably meant. */
	readonly suggestion: string | undefined;
	readonly message: string;
	/** The hint to show if there is no suggestion. */
	readonly hint: string;
}

interface LocatedFormat {
	readonly format: LogFormat | undefined;
	/** JSON pointer of the log. */
	readonly pointer: string;
	/** True if only entries of access logs are written to the log. */
	readonly onlyAccess: boolean;
}

function logFormatsOf({ document }: LintContext): readonly LocatedFormat[] {
	const processLogs = Object.entries(document.settings?.logs ?? {}).map(([name, log]) => ({
		format: log.format,
		pointer: `/settings/logs/${escapePointer(name)}`,
		onlyAccess: includesOnlyAccess(log),
	}));
	const siteLogs = (document.sites ?? []).flatMap(({ logs = [] }, site) =>
		logs.map(({ format }, index) => ({ format, pointer: `/sites/${site}/logs/${index}`, onlyAccess: true })),
	);
	return [...processLogs, ...siteLogs];
}

function includesOnlyAccess({ include = [] }: Pick<SiteLog, 'include'>): boolean {
	return include.length > 0 && include.every(name => /^http\.log\.access(?:\.|$)/.test(name));
}

/** Returns the template of a text format, which other formats may wrap; '' if there is none. */
function textTemplateOf(format: LogFormat | undefined): string {
	if (!format) return '';
	if (format.encoder === 'text') return format.text;
	return 'wrap' in format ? textTemplateOf(format.wrap) : '';
}

/** Returns the paths of the fields that a format adds, including the new paths of fields that it renames. */
function fieldsAddedBy(format: LogFormat | undefined): string[] {
	if (!format || !('wrap' in format || 'fields' in format)) return [];
	const wrappedFields = fieldsAddedBy(format.wrap);
	if (format.encoder === 'append') return [...Object.keys(format.fields), ...wrappedFields];
	if (format.encoder !== 'filter') return wrappedFields;
	const renamedFields = Object.entries(format.fields).flatMap(([path, fieldFilter]) =>
		fieldFilter.filter === 'rename' ? [path.slice(0, path.lastIndexOf('>') + 1) + fieldFilter.name] : [],
	);
	return [...renamedFields, ...wrappedFields];
}

interface LocatedFilter {
	/** Path of the field that the filter changes. */
	readonly path: string;
	readonly pointer: string;
}

/** Returns the filters of a format and of the formats that it wraps. `pointer` is the JSON pointer of the format. */
function filtersOf(format: LogFormat | undefined, pointer: string): LocatedFilter[] {
	if (!format || !('wrap' in format || 'fields' in format)) return [];
	const wrappedFilters = filtersOf(format.wrap, `${pointer}/wrap`);
	if (format.encoder !== 'filter') return wrappedFilters;
	const ownFilters = Object.keys(format.fields).map(path => ({
		path,
		pointer: `${pointer}/fields/${escapePointer(path)}`,
	}));
	return [...ownFilters, ...wrappedFilters];
}

/**
 * Returns the known field that a misspelled path was probably meant to name; undefined if none is similar. A known field may end
 * with `*`, which stands for any name.
 */
function nearestField(path: string, knownFields: readonly string[]): string | undefined {
	const lastPart = path.slice(path.lastIndexOf('>') + 1);
	const isNested = lastPart !== path;
	const fields = knownFields.flatMap(field => {
		if (!field.endsWith('*')) return [field];
		return isNested ? [field.slice(0, -1) + lastPart] : [field.slice(0, -2)];
	});
	// The most frequent mistake is a path without its first part.
	const fieldWithSuffix = fields.find(field => field.toLowerCase().endsWith(`>${path.toLowerCase()}`));
	return fieldWithSuffix ?? nearestName(path, fields);
}

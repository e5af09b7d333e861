/** The lint rule `log/field-never-set`. */
import { nearestName, suggestName } from '../../diagnostics/suggest.ts';
import type { LogFormat } from '../../document/log-settings.ts';
import { ENTRY_FIELDS, isEntryField } from '../../modules/providers/log-formats/entry-fields.ts';
import { fieldsInLogText, shorthandsOfLogText } from '../../modules/providers/log-formats/log-text.ts';
import { escapePointer } from '../../schema/validate.ts';
import { traitsOf } from '../inspection/answering.ts';
import type { LintContext } from '../inspection/lint-context.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

/** Reports fields in `format text` that no entry has, because their names are misspelled or nothing adds them. */
export const logFieldNeverSet: LintRule = {
	name: 'log/field-never-set',
	severity: 'warning',
	summary: 'A log format writes a field that no entry has.',
	documentation: [
		'In `format text`, `{stauts}` is the field `stauts` of an entry. No entry has it, so that every line has `-` in its place.',
		'Correct the name, or add the field with `log_append`.',
	].join('\n'),
	ofConfigfile: true,
	check: cx => {
		const logs = logsOf(cx);
		const added = new Set([
			...cx.walked.steps.flatMap(({ step }) => traitsOf(step).logFieldsOf?.(step) ?? []),
			...logs.flatMap(({ format }) => fieldsAddedBy(format)),
		]);
		const keys = new Set([...added].map(name => name.toLowerCase()));
		const meant = [...ENTRY_FIELDS.filter(name => !name.endsWith('*')), ...shorthandsOfLogText(), ...added];
		const reported = new Set<string>();
		for (const { format, pointer } of logs) {
			for (const { name, path } of fieldsInLogText(textOf(format))) {
				if (isEntryField(path, keys)) continue;
				const written = `{${name}}`;
				const span = cx.span(pointer, written);
				// Several sites may import the same log.
				const place = span ? `${span.source.name}:${span.start} ${written}` : `${pointer} ${written}`;
				if (reported.has(place)) continue;
				reported.add(place);
				const nearest = nearestName(name, meant);
				const suggested = nearest && `{${nearest}}`;
				const { label, fix } = span ? suggestName({ text: written, span }, suggested) : {};
				const hint = suggested ? (span ? undefined : `Did you mean \`${suggested}\`?`) : HINT;
				cx.at(pointer, `No entry of an access log has a field \`${name}\`.`, { words: written, label, hint, fix });
			}
		}
	},
};

const HINT = 'Correct the name, or add the field with `log_append NAME VALUE`.';

interface LocatedFormat {
	readonly format: LogFormat | undefined;
	/** JSON pointer of the log. */
	readonly pointer: string;
}

function logsOf({ document }: LintContext): readonly LocatedFormat[] {
	const ofProcess = Object.entries(document.settings?.logs ?? {}).map(([name, { format }]) => ({
		format,
		pointer: `/settings/logs/${escapePointer(name)}`,
	}));
	const ofSites = (document.sites ?? []).flatMap(({ logs = [] }, site) =>
		logs.map(({ format }, index) => ({ format, pointer: `/sites/${site}/logs/${index}` })),
	);
	return [...ofProcess, ...ofSites];
}

/** Returns the text of a text format, also if other formats wrap it; otherwise an empty string. */
function textOf(format: LogFormat | undefined): string {
	if (!format) return '';
	if (format.encoder === 'text') return format.text;
	return 'wrap' in format ? textOf(format.wrap) : '';
}

/** Returns the names of the fields that a format adds, or gives to other fields. */
function fieldsAddedBy(format: LogFormat | undefined): string[] {
	if (!format || !('wrap' in format || 'fields' in format)) return [];
	const inner = fieldsAddedBy(format.wrap);
	if (format.encoder === 'append') return [...Object.keys(format.fields), ...inner];
	if (format.encoder !== 'filter') return inner;
	return [...Object.values(format.fields).flatMap(one => (one.filter === 'rename' ? [one.name] : [])), ...inner];
}

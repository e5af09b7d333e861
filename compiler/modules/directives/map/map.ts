/** `map`: defines placeholders whose values are looked up by a source string. */
import { regexpExamples } from '../../../codegen/regexp/regexp-example.ts';
import type { Step } from '../../../document/document.ts';
import { isPlaceholder } from '../../../lower/context/mapped-placeholders.ts';
import { requireBlock } from '../../../lower/context/require-block.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { changeSettingPlaceholder, UNMENTIONED_VALUE } from '../../contract/request-change.ts';
import { parseScalar } from '../../words/parse-scalar.ts';
import { compileLookup } from './lookup.ts';

/** The value that a mapping gives to a destination; null leaves the choice to later mappings. */
export type MapOutput = string | number | boolean | null;

/** A mapping: a line of the block. It has either `input` or `input_regexp`. */
export interface MappingLine {
	readonly input?: string;
	readonly input_regexp?: string;
	/** The outputs, one per destination. */
	readonly outputs: readonly MapOutput[];
}

export interface LookupStep extends Step {
	readonly handler: 'lookup';
	readonly source: string;
	readonly destinations: readonly string[];
	readonly mappings: readonly MappingLine[];
	readonly defaults?: readonly MapOutput[];
}

const USAGE = 'map [matcher] <source> <destination>… { [~]<input> <output>…; default <output>… }';

const OUTPUTS_SCHEMA = {
	type: 'array',
	secret: 'by-destination',
	items: { type: ['string', 'number', 'boolean', 'null'] },
};

/** Syntax: `map [matcher] <source> <destination>… { … }`. */
export const map = handlerDirective<LookupStep>({
	kind: 'handler',
	id: 'lookup',
	observedFields: 'all',
	probeChanges: ({ source: sourceWord, mappings }) => {
		const placeholderName = /^\{([^{}]+)\}$/.exec(sourceWord)?.[1];
		if (placeholderName === undefined) return [];
		const sourceValues = mappings.flatMap(({ input: inputWord, input_regexp: regexp }) =>
			regexp === undefined ? [inputWord ?? ''] : regexpExamples(regexp),
		);
		return [...sourceValues, UNMENTIONED_VALUE].flatMap(
			value => changeSettingPlaceholder(placeholderName, value) ?? [],
		);
	},
	names: { configfile: ['map'], compatfile: ['map'] },
	usage: USAGE,
	summary: 'Defines placeholders whose values depend on a text.',
	documentation: [
		'Each destination, a name in braces, becomes a placeholder of the request. When it is used, the source is compared with',
		'the inputs in order: a plain input must equal it, one that begins with `~` is a regular expression that may match anywhere',
		"in it. The value is the output in the destination's column; `-` defers to later lines, then to `default`;",
		'otherwise it is empty. If several `map`s define one destination, the first that runs counts.',
		'',
		'Unquoted outputs are numbers or booleans if they read as one. Plain outputs and defaults may contain',
		// biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a group's name in a replacement
		'placeholders, those of regular expressions may contain groups: `${1}`, `${name}`.',
		'',
		'```',
		'map {host} {backend} {tier} {',
		'	shop.example.com 10.0.0.1:80 gold',
		// biome-ignore lint/suspicious/noTemplateCurlyInString: as above
		'	~(.*)\\.example\\.com$ "${1}.internal:80" -',
		'	default 10.0.0.9:80 free',
		'}',
		'respond "{tier}"',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	placeholdersOf: ({ destinations }) => destinations,
	// The source is the first argument, or the second if the first is a matcher. The destinations follow.
	definesPlaceholders: ({ words }) => words.slice(/^[/*@]/.test(words[1]?.text ?? '') ? 3 : 2),
	order: { rank: 20 },
	lower: ({ line, args }, cx) => {
		const block = requireBlock(line, cx);
		const [sourceWord, ...destinationWords] = args;
		if (!sourceWord || destinationWords.length === 0) {
			cx.problem('error', 'map/no-destination', line.words[0]!.span, 'missing destination argument(s)', {
				hint: `Usage: ${USAGE}`,
			});
			return undefined;
		}
		const destinations = destinationWords.flatMap(word => lowerDestination(word, cx) ?? []);
		const mappings: MappingLine[] = [];
		let defaults: MapOutput[] | undefined;
		const mappingIndexByInput = new Map<string, number>();
		for (const innerLine of block?.lines ?? []) {
			cx.noBlock(innerLine);
			const [inputWord, ...outputWords] = innerLine.words as readonly [Word, ...Word[]];
			if (outputWords.length > destinationWords.length) {
				cx.problem('error', 'map/too-many-outputs', outputWords[destinationWords.length]!.span, 'too many outputs', {
					hint: `There ${destinationWords.length === 1 ? 'is 1 destination' : `are ${destinationWords.length} destinations`}.`,
				});
				continue;
			}
			if (inputWord.text === 'default' && inputWord.quote === 'none') {
				if (defaults) cx.problem('error', 'map/defaults-twice', inputWord.span, 'defaults already defined');
				defaults = outputWords.map(word => lowerOutput(word, cx, false));
				continue;
			}
			const mapping = lowerMapping(innerLine, inputWord, outputWords, destinationWords.length, cx);
			if (!mapping) continue;
			const inputKey = mapping.input ?? mapping.input_regexp!;
			const earlierIndex = mappingIndexByInput.get(inputKey);
			if (earlierIndex !== undefined) {
				const message = `mapping ${mappings.length} has a duplicate input '${inputKey}' previously used with mapping ${earlierIndex}`;
				cx.problem('error', 'map/duplicate-input', inputWord.span, message);
			}
			mappingIndexByInput.set(inputKey, mappings.length);
			mappings.push(mapping);
		}
		if (!block || destinations.length < destinationWords.length) return undefined;
		return cx.origin<LookupStep>(
			{
				handler: 'lookup',
				source: cx.template(sourceWord),
				destinations,
				mappings,
				...(defaults && defaults.length > 0 ? { defaults } : {}),
			},
			line.span,
		);
	},
	schema: {
		properties: {
			source: { type: 'string', description: 'Text that is compared with the inputs, with placeholders.' },
			destinations: {
				type: 'array',
				items: { type: 'string', pattern: '^[^{}]+$' },
				minItems: 1,
				description: 'Names of the placeholders to define.',
			},
			mappings: {
				type: 'array',
				items: {
					type: 'object',
					properties: {
						input: { type: 'string', secret: 'by-source', description: 'Text that the source must equal.' },
						input_regexp: {
							type: 'string',
							secret: 'by-source',
							description: 'Regular expression that the source must match.',
						},
						outputs: { ...OUTPUTS_SCHEMA, description: 'Value for each destination; null defers to later mappings.' },
					},
					required: ['outputs'],
					additionalProperties: false,
				},
				description: 'Tried in this order.',
			},
			defaults: { ...OUTPUTS_SCHEMA, description: 'Value for each destination if no mapping provides one.' },
		},
		required: ['source', 'destinations', 'mappings'],
	},
	compile: compileLookup,
});

function lowerDestination(word: Word, cx: LowerContext): string | undefined {
	const { text, span } = word;
	if (!isPlaceholder(text)) {
		cx.problem('error', 'map/destination', span, 'destination must be a placeholder and only a placeholder', {
			hint: 'Write a name in braces, such as `{backend}`.',
		});
		return undefined;
	}
	const name = text.slice(1, -1);
	const placeholderKind = cx.placeholderKind(name);
	if (placeholderKind === 'shorthand') {
		const message = `destination ${text} conflicts with a Compatfile placeholder shorthand`;
		cx.problem('error', 'map/destination', span, message);
		return undefined;
	}
	if (placeholderKind === 'full' && cx.dialect === 'configfile') {
		cx.problem('error', 'map/destination', span, `\`${text}\` is a placeholder already.`, {
			hint: 'Give it another name.',
		});
		return undefined;
	}
	return name;
}

function lowerMapping(
	line: Line,
	inputWord: Word,
	outputWords: readonly Word[],
	destinationCount: number,
	cx: LowerContext,
): MappingLine | undefined {
	if (!cx.count(line, outputWords, 1, destinationCount, '[~]<input> <output>…')) return undefined;
	const isRegexp = inputWord.text.startsWith('~');
	const values = outputWords.map(word => lowerOutput(word, cx, isRegexp));
	while (values.length < destinationCount) values.push(null);
	if (!isRegexp) return cx.origin({ input: inputWord.text, outputs: values }, line.span);
	const expression = cx.regexp({ ...inputWord, text: inputWord.text.slice(1) });
	return expression === undefined ? undefined : cx.origin({ input_regexp: expression, outputs: values }, line.span);
}

function lowerOutput(word: Word, cx: LowerContext, isRegexp: boolean): MapOutput {
	if (word.quote !== 'none') return isRegexp ? word.text : cx.template(word);
	if (word.text === '-') return null;
	const value = parseScalar(word.text);
	return typeof value === 'string' && !isRegexp ? cx.template(word) : value;
}

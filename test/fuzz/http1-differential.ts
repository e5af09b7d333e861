/**
 * Differential fuzzing of the HTTP/1.1 parser against Node's. The result must not depend on how the bytes are split. If our
 * parser accepts an input, Node must accept it and see the same messages.
 *
 * Usage: node test/fuzz/http1-differential.ts [seconds] [seed]; prints statistics, and fails if there is a disagreement.
 */
import { pathToFileURL } from 'node:url';
import { requestMaker } from './mutated-requests.ts';
import { endOfMessages, isKnownToNode, nodeServerReader, ourServerReader, type ServerReading } from './readings.ts';

export interface FuzzResult {
	readonly inputs: number;
	/** Number of inputs whose first message was accepted. */
	readonly accepted: number;
	/** Number of inputs that were also read byte by byte. */
	readonly everyByte: number;
	/** Disagreements, each with its input. */
	readonly disagreements: readonly string[];
}

/** Maximum length of the inputs that are also read byte by byte, in bytes. */
const EVERY_BYTE_MAX_LENGTH = 400;
/** One input in this many is also read byte by byte. */
const EVERY_BYTE_INTERVAL = 50;

/** Tries inputs for `milliseconds`, until `most` inputs have been tried, or until ten disagreements have been found. */
export async function fuzzHttp1(seed: number, milliseconds: number, most: number = Infinity): Promise<FuzzResult> {
	const ours = ourServerReader();
	const node = nodeServerReader();
	const { next, request } = requestMaker(seed);
	const disagreements: string[] = [];
	const end = performance.now() + milliseconds;
	let inputs = 0;
	let accepted = 0;
	let everyByte = 0;
	while (performance.now() < end && inputs < most && disagreements.length < 10) {
		const text = request();
		inputs++;
		const whole = await ours([text]);
		const cuts = Array.from({ length: 1 + next(4) }, () => next(text.length)).sort((a, b) => a - b);
		const pieces = [0, ...cuts].map((cut, i) => text.slice(cut, cuts[i] ?? text.length)).filter(piece => piece !== '');
		compare('in pieces', pieces, whole, await ours(pieces), disagreements);
		if (text.length <= EVERY_BYTE_MAX_LENGTH && next(EVERY_BYTE_INTERVAL) === 0) {
			everyByte++;
			compare('byte by byte', [text], whole, await ours([...text]), disagreements);
		}
		if (whole.messages.length === 0) continue;
		accepted++;
		const foreign = whole.messages.findIndex(message => !isKnownToNode(message));
		const known = foreign === -1 ? whole.messages : whole.messages.slice(0, foreign);
		if (known.length === 0) continue;
		// Node gets only the bytes of the messages that our parser accepted. An error in later bytes would make Node abandon requests
		// that it has already read.
		const nodeReading = await node([text.slice(0, endOfMessages(text, known.length))]);
		// After a request for an upgrade that nobody handles, Node discards bytes that have already arrived.
		const upgrades = /\nupgrade:/i.test(text) && nodeReading.messages.length > 0;
		const expectedMessages = upgrades ? known.slice(0, nodeReading.messages.length) : known;
		const same = expectedMessages.every((message, index) => nodeReading.messages[index] === message);
		if (!same)
			disagreements.push(
				`Node reads otherwise: ${toText(text)}\n  ours ${toText(known)}\n  Node ${toText(nodeReading)}`,
			);
	}
	return { inputs, accepted, everyByte, disagreements };
}

function compare(
	how: string,
	pieces: readonly string[],
	whole: ServerReading,
	split: ServerReading,
	into: string[],
): void {
	// How the bytes are split may determine whether the handler of a request with a malformed body is called. Clients see no
	// difference.
	if (toText(whole) === toText(split)) return;
	into.push(`${how} read otherwise: ${toText(pieces)}\n  whole ${toText(whole)}\n  split ${toText(split)}`);
}

function toText(value: unknown): string {
	return JSON.stringify(value);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
	const seconds = Number(process.argv[2] ?? 60);
	const seed = Number(process.argv[3] ?? Date.now() % 2 ** 31);
	const startedAt = performance.now();
	const result = await fuzzHttp1(seed, seconds * 1000);
	const rate = Math.round(result.inputs / ((performance.now() - startedAt) / 1000));
	const { inputs, accepted, everyByte, disagreements } = result;
	console.log(`seed ${seed}: ${inputs} inputs (${rate} a second), ${accepted} accepted, ${everyByte} byte by byte`);
	for (const disagreement of disagreements) console.log(disagreement);
	process.exit(disagreements.length > 0 ? 1 : 0);
}

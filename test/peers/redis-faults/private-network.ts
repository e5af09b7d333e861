/**
 * Machines as network namespaces, with two networks: visitors and the upstream use the front network, and only Redis is reached over
 * the back network. A machine can therefore lose Redis while it serves.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export type NetworkName = 'front' | 'back';

/** The third byte of the addresses of a network, 10.77.x.0/24. */
const SUBNETS: { readonly [name in NetworkName]: number } = { front: 1, back: 2 };
/** The last byte of the address that this process has in the front network. */
const OWN_NUMBER = 254;

/** Address of this process, for machines. */
export const OWN_ADDRESS: string = addressIn('front', OWN_NUMBER);

export function addressIn(network: NetworkName, number: number): string {
	return `10.77.${SUBNETS[network]}.${number}`;
}

/** Runs a command, and returns its output. */
export async function run(command: string, ...args: readonly string[]): Promise<string> {
	return (await execute(command, args, { encoding: 'latin1', maxBuffer: 16 * 1024 * 1024 })).stdout;
}

/** Makes the two networks, in this process's own namespace. */
export async function makeNetworks(): Promise<void> {
	await run('ip', 'link', 'set', 'lo', 'up');
	for (const network of ['front', 'back']) {
		await run('ip', 'link', 'add', network, 'type', 'bridge');
		await run('ip', 'link', 'set', network, 'up');
	}
	await run('ip', 'address', 'add', `${OWN_ADDRESS}/24`, 'dev', 'front');
}

/** A machine of the networks, with a host name of its own. It exists until it is closed and its processes have ended. */
export class NetworkMachine {
	readonly name: string;
	readonly number: number;
	/** A process that does nothing but keep the namespaces in existence. */
	readonly #keeper: ChildProcess;

	private constructor(name: string, number: number, keeper: ChildProcess) {
		this.name = name;
		this.number = number;
		this.#keeper = keeper;
	}

	/**
	 * @param name A host name of at most 9 letters.
	 * @param number The last byte of the machine's addresses.
	 */
	static async create(name: string, number: number, networks: readonly NetworkName[]): Promise<NetworkMachine> {
		const script = 'hostname "$1" && ip link set lo up && echo ready && exec cat >/dev/null';
		const keeper = spawn('unshare', ['--net', '--uts', 'sh', '-c', script, 'sh', name], {
			stdio: ['pipe', 'pipe', 'inherit'],
		});
		const [output] = await Promise.race([once(keeper.stdout!, 'data'), once(keeper.stdout!, 'end')]);
		if (output === undefined) throw new Error(`the namespaces of ${name} could not be made`);
		const machine = new NetworkMachine(name, number, keeper);
		for (const network of networks) await machine.#connectTo(network);
		return machine;
	}

	addressIn(network: NetworkName): string {
		return addressIn(network, this.number);
	}

	/** Returns a command that runs a program on this machine. The program has the process ID of the command. */
	command(...args: readonly string[]): [string, ...string[]] {
		const namespaces = `/proc/${this.#keeper.pid}/ns`;
		return ['nsenter', `--net=${namespaces}/net`, `--uts=${namespaces}/uts`, '--', ...args];
	}

	/** Connects the machine to a network, or cuts it off: packets are then lost without an answer, and connections stay open. */
	async setLink(network: NetworkName, state: 'up' | 'down'): Promise<void> {
		await run('ip', 'link', 'set', `${this.name}-${network}`, state);
	}

	async close(): Promise<void> {
		this.#keeper.stdin!.end();
		if (this.#keeper.exitCode === null && this.#keeper.signalCode === null) await once(this.#keeper, 'exit');
		// The kernel would remove the links by itself, but only a moment after the last process has ended.
		for (const network of ['front', 'back'])
			await run('ip', 'link', 'delete', `${this.name}-${network}`).catch(() => {});
	}

	async #connectTo(network: NetworkName): Promise<void> {
		const [outside, inside] = [`${this.name}-${network}`, network];
		await run('ip', 'link', 'add', outside, 'type', 'veth', 'peer', inside, 'netns', String(this.#keeper.pid));
		await run('ip', 'link', 'set', outside, 'master', network, 'up');
		await run(...this.command('ip', 'address', 'add', `${this.addressIn(network)}/24`, 'dev', inside));
		await run(...this.command('ip', 'link', 'set', inside, 'up'));
	}
}

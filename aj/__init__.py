"""Submit and run ML jobs from one file. `from aj import Client` asks the daemon of this user.

The plan of the house, from the ground up. A room imports only rooms that stand above it in this list, and
these are strangers to each other: store and net; template and pack; backends; daemon, client and view.

base/  the ground: imports nothing of ours
    clock          Time behind one object, so that hours can pass in a test without waiting
    crash          Named points at which a test may kill this very process, to prove what survives
    errors         Every error that `aj` raises on purpose, each with its exit code and, when there is one
    noun           Dataclasses that cost a start next to nothing
    packs          Parts of the single-file program that are unpacked only when they are first needed
    paths          Where things are
    proc           The only room that starts other programs, and what can be asked about processes
    redact         Secrets out of text
    settings       Every environment variable that `aj` reads, read once into one frozen object
    text           Small work on words
    units          Sizes, durations and whole numbers

model/  nouns: frozen values without input, output or a clock
    catalogue      Instance types: the machines that a series of quota can be spent on
    cloudjob       A job of a workspace as it is told here
    code           Code as a noun: which tree to take and by which rules, and the archive that came of it
    commandjob     A command job of Azure Machine Learning
    exits          Exit codes by which our own programs on a node end, when it is not the user's that failed
    handle         A handle names one job at one place
    job            A JobSpec: everything a user asked for, typed, with nothing left to look up in a template
    json           The one name for a JSON value
    log            Log bytes as they travel
    names          Names and ids: what a job is called, here and at each kind of place
    quota          Virtual clusters and what is left of them
    record         A journal record
    sku            The SKU: what a machine must have, in one short word such as `2x80G8-A100-NvLink`
    state          The states of a job, and every move that is allowed between them, with who makes it
    step           What happens while a job is being submitted, told step by step to whoever listens
    tally          Totals over many jobs
    ticket         A ticket: one promised submission, from acceptance to its outcome
    words          The words of the command line that a job runs
    workload       A Workload: the record of one job that our own engine drives, and the events of its life

wire/  the contract of the socket
    azure          What crosses the socket about Azure
    codec          Nouns to JSON and back, strictly
    daemon         The daemon as others speak of it
    errors         Errors as they cross the socket
    messages       What crosses the socket besides the nouns themselves
    paths          The routes of the socket as names
    version        Whether two sides fit

store/  the door to the disk
    archives       Packed code on disk
    atomic         Whole files, or none
    cache          Answers of remote services with their age
    config         Settings: of the project (`.azure_jobs/aj.toml`), of the user
    joblogs        Logs of jobs: what the processes of each start wrote, byte for byte, and when
    jobs           Jobs on disk: one folder each, with the record, what was asked for, the events
    journal        The journal: what became of every submission, one line each, never rewritten
    jsonl          History by the line
    keys           Every setting there is
    layout         The names of all files in the state directory, in one place
    lock           The only use of `filelock`
    queue          The queue of one project in the hands of its owner
    runtime        The runtime folder
    tickets        Tickets on disk, for whoever looks
    toml_lines     Where a key stands in a TOML file

net/  the door to the network
    clouds         The clouds that are known
    credentials    Credential sources
    document       A JSON object that a service answered, read field by field
    http           Requests and answers of the services we speak to, and what a transport promises about them
    origin         Where an address leads
    pages          Lists that come page by page
    pool           The one connection pool of the daemon
    ports          A TCP port of this machine that nobody uses just now
    proxies        Which way out of this network
    refusal        An answer of 300 or more, as one of our errors
    retry          Asking again: a transport around another one that repeats questions, and never a change
    token          Tokens: taken from the credential source of this user, kept in memory alone
    uds            HTTP over a Unix socket

azure/  Azure, one verb a function
    accounts       Storage accounts
    arm            The Resource Manager
    asker          Who asks: what Azure told one person is never shown to another
    blobs          One container of blob storage, and the few requests by which a file comes into it, once
    blocks         A file into a container, once
    chosen         What the user's settings say to Azure
    clusters       Virtual clusters
    computes       Computes: the clusters and machines of one workspace
    datastores     Datastores: the blob containers that a workspace knows by a name of its own
    delivery       Code into a workspace
    endings        How a job ends by our hand
    environments   Environments: the images that a workspace knows by name and version
    fan            Many questions at once
    gauge          Bytes of an upload as they leave, counted
    graph          Resource Graph: one question over many subscriptions
    hardware       What a line of text says of a machine
    history        Run history: what the data plane of a workspace knows of a run: its log files, its error
    identity       Identities: who is signed in here, and the user-assigned identities that a job may run as
    images         Images of the service's own
    instances      Instance types: the catalogue of what a virtual cluster's machines are, region by region
    jobs           Jobs of a workspace
    line           The line to a storage account
    logs           Log files of a run
    memory         Small findings kept for later
    office         What every service that puts jobs into a workspace does alike
    quota          Usages: how much of each machine family a subscription has in use in a region
    sessions       Sessions: how this process speaks to the clouds of its users
    signatures     Signed addresses of blobs
    states         What the service's words for the state of a job mean to us
    submission     From a planned job to a job of a workspace
    subscriptions  Subscriptions: those this user sees and may use
    supply         What virtual clusters have to offer, live
    times          Moments as Azure writes them
    workplace      Which workspace a submission goes to
    workspaces     Workspaces: one by its coordinates, many by the resource graph

template/  YAML to a JobSpec
    build          A template and a command line to one JobSpec, with nothing left to look up
    check          Everything that can be found wrong with a template from its files alone, all of it at once
    dump           Plain values to YAML text that readers of version 1.1 and of version 1.2 take for the same value
    env            Environment variables of the command line
    issue          One finding about a template
    load           Which files make up a template
    merge          Two layers of a template to one
    origin         Where each value of a merged template was written, by what rule it won, and what it hides
    reader         Typed values out of one mapping of a template, each fault noted with its place
    schema         The keys that a template may have and what kind each value is, whatever the service
    script         A script that the command line names and that does not travel
    sections       Sections of a template that several services read alike
    service        What a service tells the shared build about a template, and nothing more
    shape          How many nodes and processes, and which SKU
    source         One template file as it stands on the disk
    tree           Values of a template that remember where they were written, and what a merge did to them
    venv           The virtual environment of the invocation directory
    yaml           One YAML file to a tree of values that know their places

pack/  a code tree to an archive
    advice         What a user should hear about ignore patterns
    archive        A code tree to an archive that is named by what is in it, and kept
    cache          What was learnt of a tree when it was last read
    content        Reading the selected files, so that each is taken whole and as it was at one moment
    deflate        Compression in blocks and threads
    digest         The digest of code
    explain        Why a path is in the code or not
    glob           One ignore pattern, read byte for byte as git reads it
    ignore         Which paths stay out
    links          Which links may travel
    node           The two programs that go with code to where it runs
    offence        What keeps a tree from being packed
    scripts        The project's scripts
    selection      A selection: the entries of a tree that are code, in byte order of their paths
    sources        Where the ignore rules of a tree come from
    ssh            Files of `~/.ssh` that a template lists
    tar            The tar format, as far as code needs it
    unpack         An archive to a folder
    walk           The walk through a tree that selects its code

backend/  the places that run jobs, a folder each
    protocol       What every place that runs jobs promises
    registry       The services that `aj` knows, by name
    aml/           backend options payload target
    amlt/          options payload
    local/         attempt driver limits lines machine options ranks states strays supervisor
    sing/          backend match options payload target
    volcano/       fields options tasks

engine/  what the product does; only inside the daemon
    attempt        The one try to submit one ticket
    cloud          Azure as the daemon asks it
    cloudjobs      Jobs of workspaces
    cloudlogs      Log files of runs in workspaces
    clusters       Virtual clusters with their quota and their machines
    compose        The engine of the product, put together
    desk           One project's queue in the hands of this daemon
    drive          One job on its way from queued to its end, in a thread of its own
    engine         The engine: everything the daemon can be asked for, in one place
    hub            Events on their way out
    identity       Who is signed in
    images         Images of the service's own, by every name they have
    janitor        What happens to a job after its end
    jobs           The jobs that our own engine drives
    kept           Answers that are kept
    lifecycle      The one door through which a job changes its state
    means          What a submission needs of the house
    native         What the services of Azure need of this house
    quota          Quota: what is left of virtual clusters, of the machine families of subscriptions
    reconcile      Finding out what became of a submission whose outcome is unknown
    records        What is kept of a submission
    retry          A failed submission once more
    scheduler      Which queued job starts next, and why the others wait
    services       Where the names of services lead
    skus           Machines that a job can ask for
    starter        Turning the plan of who starts into moves
    steps          What happens to a submission while it is carried out, on its way to whoever follows it
    submit         Accepting a submission for good
    visit          One question to Azure
    worker         The loop that carries queued submissions out, one at a time, oldest first

daemon/  the started process
    call           One decoded call, as a route sees it
    engine         The engine as the daemon sees it, as one list
    front          The strict front of the socket
    lifecycle      When the daemon leaves
    log            The daemon's log
    replay         Changes that were asked for already
    router         Method and path to the one function that answers, and every error to its envelope
    serve          The started process
    server         The socket's server
    stream         Answers that take their time

daemon/routes/  its routes, one room a noun
    admin          Routes of the daemon itself
    cloudjobs      Routes of the jobs of workspaces
    code           Routes of packed code
    events         The route of events
    inventory      Routes of what Azure has for this user
    jobs           Routes of the jobs that the engine drives
    journal        The route of the journal
    logs           The route of logs
    queue          Routes of the queue
    submissions    Routes of submissions

client/  the caller's side of the socket
    client         The caller's side in one object
    cloudjobs      Jobs of workspaces
    cloudlogs      Log files of jobs of workspaces as one stream of bytes
    code           Packed code that the daemon keeps
    daemon         The daemon as a noun
    events         Events: everything that changes at the daemon, as it changes
    inventory      What Azure has for this user
    jobs           Jobs that the daemon drives
    launch         Find the daemon, or start it
    line           One conversation with the daemon
    logs           Logs of jobs on this machine, read from disk
    presence       Who stands at the socket
    queue          The queue: tickets of this project or of all, one of them, and what can be done to it
    submissions    Submissions: promise one to the daemon, follow it to its outcome

view/  values to lines
    action         What an action did to each thing it was asked about
    auth           Who is signed in, and for which scopes there is a token
    cloudjob       Jobs of workspaces as rows, as a status, and counted
    code           The code that would travel
    config         Settings as rows
    daemon         The daemon as a person sees it
    docs           Pages of documentation, and the list of them
    document       What a command answers, once, for every format
    help           A page of help as text and as JSON
    image          Images of the service's own as rows
    init           A new project: what was written, and what to type next
    job            Jobs of this machine as rows, as records, and as the lines of `wait`
    journal        The journal as rows
    logs           Lines of a job's log as JSON
    queue          Tickets as rows
    quota          Quota as rows: what is used and what is left, for everybody and for this user
    schema         The JSON schemas of everything that commands print, written beside the rows they describe
    screen         The terminal: the only room that writes to stdout or stderr, or asks a question
    sku            Types of machines as rows, each with the SKU that asks for it
    submission     A submission: what was sent, queued or only rendered, and what to type next
    table          Rows as text: fitted and coloured for a terminal, tabs and full values for a pipe
    template       Templates as rows, as resolved YAML, and with the origin of every value
    times          Moments for people
    told           When something was told, and what could not be read
    version        The version as a line and as JSON

cli/  one room a command: `aj queue list` is `cli/queue/list.py`

main  the door: the words of the command line in, an exit code out
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` for it would cost a part of every start
if TYPE_CHECKING:
    from aj.base.errors import (
        AjError,
        AuthError,
        ConfigError,
        DaemonError,
        JobFailed,
        NotFound,
        OutcomeUnknown,
        Refused,
        RemoteError,
        TemplateError,
        TimedOut,
        Unavailable,
        UserError,
    )
    from aj.client.api import Client
    from aj.client.asynchronous import AsyncClient, AsyncJob
    from aj.client.errors import (
        JobSubmissionChanged,
        JobSubmissionExpired,
        JobSubmissionTerminated,
        JobSubmissionUncertain,
        WorkloadWaitTimeout,
    )
    from aj.client.job import Job, Ran, Status
    from aj.model.state import JobState

__all__ = [
    "AjError",
    "AsyncClient",
    "AsyncJob",
    "AuthError",
    "Client",
    "ConfigError",
    "DaemonError",
    "Job",
    "JobFailed",
    "JobState",
    "JobSubmissionChanged",
    "JobSubmissionExpired",
    "JobSubmissionTerminated",
    "JobSubmissionUncertain",
    "NotFound",
    "OutcomeUnknown",
    "Ran",
    "Refused",
    "RemoteError",
    "Status",
    "TemplateError",
    "TimedOut",
    "Unavailable",
    "UserError",
    "WorkloadWaitTimeout",
]
_ROOMS = {
    "Client": "client.api",
    **dict.fromkeys(("AsyncClient", "AsyncJob"), "client.asynchronous"),
    **dict.fromkeys(("Job", "Ran", "Status"), "client.job"),
    "JobState": "model.state",
    "WorkloadWaitTimeout": "client.errors",
    **dict.fromkeys((name for name in __all__ if name.startswith("JobSubmission")), "client.errors"),
}


def __getattr__(name: str) -> object:
    """Import a name when it is asked for: a command that needs none does not pay for it."""
    if name not in __all__:
        raise AttributeError(f"module 'aj' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"aj.{_ROOMS.get(name, 'base.errors')}"), name)

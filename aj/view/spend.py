"""Spending as rows: caps with what counts against them, what is spent now, and what was spent by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aj.base import text
from aj.model import money
from aj.view import action, schema
from aj.view import scope as scopes
from aj.view.document import Column, Document, Form, listing, single

if TYPE_CHECKING:
    from aj.view.document import Item
    from aj.view.schema import Schema
    from aj.view.scope import Scope
    from aj.wire.spend import CapDone, CapRow, CostAnswer, SpendAnswer, Sum

THROTTLES = (
    Column("scope"),
    Column("session", form=Form.ID),
    Column("rate", "used_text"),
    Column("cap", "cap_text"),
    Column("set", "set_at", Form.AGE),
)
BUDGETS = (
    Column("scope"),
    Column("session", form=Form.ID),
    Column("per"),
    Column("spent", "used_text"),
    Column("held", "held_text"),
    Column("cap", "cap_text"),
    Column("resets", "resets_at", Form.TIME),
)
SPEND = (
    Column("rate", "rate_text"),
    Column("hosts", form=Form.NUMBER),
    Column("today", "day_text"),
    Column("this week", "week_text"),
    Column("this month", "month_text"),
    Column("held back", "waiting"),
    Column("prices", "prices_text"),
)
COST = (
    Column("by"),
    Column("name", form=Form.ID),
    Column("cost", "cost_text"),
    Column("jobs", form=Form.NUMBER),
    Column("hosts", "vms", Form.NUMBER),
    Column("time", "duration_s", Form.SECONDS),
    Column("jobs without a price", "workloadsWithoutPrice", Form.NUMBER),
)


def throttles(rows: Sequence[CapRow], session: str | None) -> Document:
    """Make the list of throttles; of one session when one is named."""
    found = [row for row in rows if row.cap.per is None and session in (None, row.cap.session)]
    return listing("throttle", [cap(row) for row in found], THROTTLES, noun="throttle", ids="name")


def budgets(rows: Sequence[CapRow], session: str | None) -> Document:
    """Make the list of budgets; of one session when one is named."""
    found = [row for row in rows if row.cap.per is not None and session in (None, row.cap.session)]
    return listing("budget", [cap(row) for row in found], BUDGETS, noun="budgets", ids="name")


def cap(row: CapRow) -> Item:
    """Return a cap as JSON values. Amounts are US dollars; those of a throttle are an hour's."""
    one, hour = row.cap, "/h" if row.cap.per is None else ""
    return {
        "name": one.name.removeprefix("the "),
        "scope": "account" if one.session is None else "agent-session",
        "session": one.session,
        "per": one.per.value if one.per else None,
        "cap_usd": one.usd,
        "used_usd": money.number(row.used),
        "held_usd": money.number(row.held),
        "resets_at": row.resets_at,
        "set_at": one.set_at,
        "cap_text": f"${one.usd}{hour}",
        "used_text": f"{money.text(row.used) if one.per else money.exact(row.used)}{hour}",
        "held_text": money.text(row.held),
    }


def done(name: str, found: CapDone) -> Document:
    """Make the document of caps that were set or taken away."""
    items = [
        action.item(str(item["name"]), status=found.status, state=None, detail=_told(item))
        for item in map(cap, found.rows)
    ]
    return action.done(name, items, found.status)


def _told(item: Item) -> str:
    return f"{item['cap_text']}; {item['used_text']} now"


def spend(answer: SpendAnswer) -> Document:
    """Make the document of what is spent now; below it a line for each cap."""
    prices: list[Item] = [
        {"service": one.service, "kind": one.kind, "usd": money.number(one.price)} for one in answer.prices
    ]
    item: Item = {
        "rate_usd": money.number(answer.rate),
        "hosts": answer.hosts,
        "spent_usd": {name: money.number(getattr(answer, name)) for name in ("day", "week", "month")},
        "caps": tuple(cap(row) for row in answer.caps),
        "waiting": answer.waiting,
        "prices": tuple(prices),
        "problem": answer.problem,
        "rate_text": f"{money.exact(answer.rate)}/h",
        **{f"{name}_text": money.text(getattr(answer, name)) for name in ("day", "week", "month")},
        "prices_text": tuple(f"{one.service} {one.kind} {money.exact(one.price)}/h" for one in answer.prices),
    }
    return single("spend", item, SPEND, after=[_line(cap(row)) for row in answer.caps])


def _line(item: Item) -> str:
    held = f" and {item['held_text']} held" if item["per"] is not None else ""
    return f"{text.cell(str(item['name']))}: {item['used_text']}{held} of {item['cap_text']}"


def cost(answer: CostAnswer, *, scope: Scope) -> Document:
    """Make the document of what was spent. Under `byAgent`, `byUser` and `byProvider` it stands by name as well."""
    groups = {"agent": answer.agents, "user": answer.users, "provider": answer.providers}
    rows: list[Item] = [{"by": group, **summed(one)} for group, sums in groups.items() for one in sums]
    body: Item = {
        "scope": scope.item,
        "job": answer.job,
        "since": answer.since,
        "until": answer.until,
        "items": tuple(rows),
        "total": summed(answer.total),
        "workloads_without_price": answer.total.unpriced,
        "workloadsWithoutPrice": answer.total.unpriced,
        **{f"by{group.title()}": {one.name: summed(one) for one in sums} for group, sums in groups.items()},
    }
    return Document("cost", body, rows=rows, columns=COST, empty="no costs", after=_after(answer) if rows else ())


def _after(answer: CostAnswer) -> list[str]:
    total = answer.total
    words = f"total: {_cost_text(total) or 'unknown'} for {text.plural(total.jobs, 'job')}"
    if total.unpriced:
        words += f"; {text.plural(total.unpriced, 'job')} without a price"
    return [words + ("; some hosts still count" if total.running else "")]


def summed(one: Sum) -> Item:
    """Return a sum as JSON values, under its published keys; the cost in US dollars, null when nobody knows it."""
    return {
        "name": one.name,
        "cost": None if one.cost is None else money.number(one.cost),
        "costSource": "estimated" if one.running else "actual",
        "durationMs": one.lasted_us // 1000,
        "jobs": one.jobs,
        "vms": one.hosts,
        "hasSpot": one.has_spot,
        "workloadsWithoutPrice": one.unpriced,
        "cost_text": _cost_text(one),
        "duration_s": round(one.lasted_us / 1e6, 3),
    }


def _cost_text(one: Sum) -> str | None:
    return None if one.cost is None else money.text(one.cost)


def schemas() -> Mapping[str, Schema]:
    """Return the schemas of the documents of this room."""
    maybe_text = schema.maybe(schema.TEXT)
    number, whole = schema.NUMBER, schema.WHOLE
    one = schema.record(
        name=schema.TEXT,
        scope=schema.one_of("account", "agent-session"),
        session=maybe_text,
        per=maybe_text,
        cap_usd=whole,
        used_usd=number,
        held_usd=number,
        resets_at=maybe_text,
        set_at=schema.TEXT,
        cap_text=schema.TEXT,
        used_text=schema.TEXT,
        held_text=schema.TEXT,
    )
    windows = schema.record(day=number, week=number, month=number)
    now = schema.record(
        rate_usd=number,
        hosts=whole,
        spent_usd=windows,
        caps=schema.many(one),
        waiting=schema.NAMES,
        prices=schema.many(schema.record(service=schema.TEXT, kind=schema.TEXT, usd=number)),
        problem=maybe_text,
        **dict.fromkeys(("rate_text", "day_text", "week_text", "month_text"), schema.TEXT),
        prices_text=schema.NAMES,
    )
    some = {
        "name": schema.TEXT,
        "cost": schema.maybe(number),
        "costSource": schema.one_of("actual", "estimated"),
        "durationMs": whole,
        "jobs": whole,
        "vms": whole,
        "hasSpot": schema.YES_NO,
        "workloadsWithoutPrice": whole,
        "cost_text": maybe_text,
        "duration_s": number,
    }
    groups = ("byAgent", "byUser", "byProvider")
    whole_cost = schema.record(
        scope=scopes.item_schema(),
        job=maybe_text,
        since=schema.TEXT,
        until=schema.TEXT,
        items=schema.many(schema.record(by=schema.TEXT, **some)),
        total=schema.record(**some),
        workloads_without_price=whole,
        workloadsWithoutPrice=whole,
        **dict.fromkeys(groups, schema.table(schema.record(**some))),
    )
    return {
        "throttle": schema.listing(one),
        "budget": schema.listing(one),
        "spend": schema.single(now),
        "cost": whole_cost,
    }

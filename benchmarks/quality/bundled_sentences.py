"""Count right answers of the bundled heads on sentences written after the training.

    python -m benchmarks.quality.bundled_sentences [--model albert_micro_zh]

Thirty sentences or pairs for six heads, twenty reviews whose verdict is their last
sentence, and ten reviews in Traditional characters. A similarity is right from 3.2 on
for like, up to 2 for unlike texts. `highest wrong` is the largest score of a wrong
answer. The results are in `results/bundled_sentences.json`.
"""

import argparse

import albert_tf

from benchmarks.lib.harness import console, table_of, write_results

NEAR, FAR = 3.2, 2.0
SENTENCES = {
    "sentiment": [
        ("耳机戴了半天耳朵就疼，降噪也一般，不值这个价。", "差评"),
        ("面条劲道，汤头浓，一碗下肚特别满足。", "好评"),
        ("快递盒子都压扁了，打开里面的杯子碎了一只。", "差评"),
        ("民宿的阿姨很照顾我们，早上还煮了粥，住得很舒服。", "好评"),
        ("剧情拖沓，演员全程面瘫，看到一半就走了。", "差评"),
    ],
    "topics": [
        ("主场三比零大胜，球队提前两轮锁定联赛冠军", "体育"),
        ("新款折叠手机发布，搭载自研芯片和卫星通信", "科技"),
        ("高考志愿填报今日开始，专家提醒考生注意三点", "教育"),
        ("首艘国产驱逐舰完成海上实弹演练", "军事"),
        ("新车上市，续航六百公里的纯电SUV起售价十五万", "汽车"),
    ],
    "entities": [
        ("王小明昨天从上海飞到了成都。", ["王小明 PER", "上海 LOC", "成都 LOC"]),
        ("李娜在清华大学读书。", ["李娜 PER", "清华大学 ORG"]),
        ("日本首相访问了德国。", ["日本 LOC", "德国 LOC"]),
        ("陈强被任命为中国银行行长。", ["陈强 PER", "中国银行 ORG"]),
        ("明天的会议改到下午三点。", []),
    ],
    "paraphrase": [
        (("怎么修改登录密码", "登录密码在哪里改"), "相同"),
        (("花呗怎么还款", "花呗可以提前还款吗"), "不同"),
        (("信用卡丢了怎么办", "信用卡不见了该怎么处理"), "相同"),
        (("今天下雨吗", "今天几号"), "不同"),
        (("手机号换了怎么改绑定", "更换手机号后如何重新绑定"), "相同"),
    ],
    "similarity": [
        (("一个男人在弹吉他", "一名男子正在演奏吉他"), "near"),
        (("一只猫在沙发上睡觉", "股市今天大幅上涨"), "far"),
        (("孩子们在公园里踢球", "几个小孩在公园踢足球"), "near"),
        (("飞机晚点了两个小时", "她喜欢吃巧克力"), "far"),
        (("他正在切洋葱", "一个人在切洋葱"), "near"),
    ],
    "inference": [
        (("一个女孩在海边跑步", "有人在户外运动"), "蕴含"),
        (("两只狗在草地上玩耍", "狗正在屋里睡觉"), "矛盾"),
        (("男人骑着一匹白马", "男人骑着一匹马"), "蕴含"),
        (("一位老人坐在长椅上看报纸", "老人在等他的孙子"), "中立"),
        (("孩子们正在游泳池里游泳", "没有人在水里"), "矛盾"),
    ],
}
TRADITIONAL = [
    ("這家餐廳難吃", "差评"),
    ("房間乾淨，服務員很親切，下次還來", "好评"),
    ("物超所值，太喜歡了", "好评"),
    ("手機用了兩天就壞了，客服也不回", "差评"),
    ("電影劇情無聊，看到睡著", "差评"),
    ("老師講得很清楚，學到很多", "好评"),
    ("麵條煮得太爛，湯也冷掉了", "差评"),
    ("CP值超高，推薦給大家！", "好评"),
    ("包裝破損，退貨還要自付運費，超傻眼", "差评"),
    ("環境優雅，甜點好吃，適合跟朋友聚會", "好评"),
]
# They judge nothing. Two begin a review of 300 to 480 characters.
STORIES = (
    "我们一家四口是周五晚上从苏州开车出发的，路上堵了将近两个小时，到的时候天已经全黑了。"
    "停车场在地下二层，坐电梯上来是前台。办手续的时候要登记每个人的身份证，孩子的户口本也"
    "看了一下。房间在九楼，窗户朝东，能看见对面的写字楼和一条小河。第二天上午去了博物馆，"
    "看了青铜器和瓷器的展览，中午在附近的小馆子吃了炒饭，下午沿着河边走了走，拍了些照片，"
    "晚上又去夜市转了一圈，买了两个手工做的小灯笼。第三天早上八点退房，在楼下等了十分钟"
    "的出租车，坐到火车站是二十三块钱，检票口在二楼，我们坐的是九点四十的那一趟，中午就"
    "到了家。孩子在车上睡着了，我把这几天的票据整理了一下，顺便写这篇记录。",
    "这台机器是双十一的时候下的单，一共等了五天。安装师傅约的是周六上午，他来的时候带了工具"
    "箱和一卷管子，先看了墙的位置，量了尺寸，然后打孔、固定支架、接水接电，前后大概四十分钟。"
    "说明书有三十多页，分成安装、日常使用、清洁和常见问题四个部分。遥控器用两节七号电池。我家"
    "厨房是九平方米，原来那台用了八年，是结婚的时候买的，去年冬天开始有时候会自己停下来，"
    "所以才决定换一台新的。之前去商场看过三次，也在网上比较了五六个牌子，最后选了白色的，"
    "因为橱柜也是白色的。到现在一共用了二十来天，早晚各开一次，每次半个小时左右。",
    "故事从一个小镇上的邮局讲起，主人公是一个三十岁的邮递员，每天骑着自行车给山里的人送信。"
    "第一章写他的父亲，第二章写他小时候的学校和河边的老槐树，第三章开始出现一个从城里来的"
    "画家。作者用了很多地方方言，也写了当地的节日和饮食。全书一共二十四章，四百多页，分为"
    "上下两部，中间隔了二十年。后记里作者说他为了这本书在那个镇上住了三年，采访了五十多个"
    "人，整理了两百万字的笔记。我是在图书馆借的，封面是灰蓝色，印着一座石桥。前后看了两个"
    "星期，大多是晚上睡觉以前看的，周末在阳台上又看了一些。",
    "课程一共三十六讲，每讲四十五分钟，前十讲是基础语法，中间十六讲做三个小项目，最后十讲是"
    "部署和测试。每周更新两次，周二和周四晚上八点，可以看回放。作业在网页上提交，助教批改。"
    "群里大概有四百个人，有学生也有上班的。我是做会计的，之前只在大学里学过一点点编程，报名"
    "是因为想把每个月的报表自动化。学习用的是一台四年前的笔记本，八个G的内存，系统是去年"
    "重装的。第一个月跟着直播听，后来加班多，就改成周末一次看两讲。到上周日为止三十六讲全部"
    "听完了，三个项目也都交了，证书是电子版的，昨天收到了邮件。",
)
VERDICTS = {
    "好评": (
        "总之这次非常满意，下次还会再来，强烈推荐。",
        "说实话真的很值，全家人都很喜欢。",
        "整体体验特别好，给五星好评。",
        "用下来一点毛病都没有，越用越喜欢。",
        "真心觉得不错，已经推荐给朋友了。",
    ),
    "差评": (
        "总之非常失望，再也不会来了，大家千万别上当。",
        "说实话太差了，完全不值这个钱。",
        "整体体验特别糟糕，只能给一星。",
        "没用几天就坏了，客服还推来推去，气死人。",
        "真的后悔，白白浪费时间和钱。",
    ),
}


def long_reviews():
    """Return twenty reviews: each verdict behind a story and the start of another."""
    verdicts = [(x, label) for label, row in VERDICTS.items() for x in row]
    rows = []
    for i, (verdict, label) in enumerate(verdicts):
        for j in (i, i + 2):
            first, second = (STORIES[x % len(STORIES)] for x in (j, j + 1))
            start = "。".join(second.split("。")[:3])
            rows.append((f"{first}{start}。{verdict}", label))
    return rows


def is_right(answer, expected):
    """Return whether an answer is the expected one, and its score."""
    if isinstance(expected, list):
        found = [f"{x['word']} {x['entity_group']}" for x in answer]
        return found == expected, min((x["score"] for x in answer), default=0.0)
    if expected in ("near", "far"):
        score = answer["score"]
        # A similarity is not a probability.
        return (score >= NEAR if expected == "near" else score <= FAR), 0.0
    return answer["label"] == expected, answer["score"]


def measured(model, head, rows):
    """Return the number of right answers of a head, and the largest wrong score."""
    answers = albert_tf.pipeline(None, model, head=head)([text for text, _ in rows])
    wrong_scores = []
    for answer, (_, expected) in zip(answers, rows, strict=True):
        right, score = is_right(answer, expected)
        if not right:
            wrong_scores.append(score)
    return {
        "right": len(rows) - len(wrong_scores),
        "of": len(rows),
        "highest wrong": max(wrong_scores, default=None),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="albert_micro_zh")
    model = parser.parse_args().model
    rows = {head: measured(model, head, rows) for head, rows in SENTENCES.items()}
    rows["thirty sentences"] = {
        "right": sum(row["right"] for row in rows.values()),
        "of": sum(row["of"] for row in rows.values()),
        "highest wrong": max(row["highest wrong"] or 0.0 for row in rows.values()),
    }
    rows["long reviews"] = measured(model, "sentiment", long_reviews())
    rows["Traditional"] = measured(model, "sentiment", TRADITIONAL)
    console.print(table_of(rows, ("right", "of", "highest wrong")))
    write_results("bundled_sentences", {"model": model, "rows": rows})


if __name__ == "__main__":
    main()
